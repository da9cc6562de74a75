package action

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

func TestRunReplacesActiveJobs(t *testing.T) {
	t.Parallel()
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for name, tc := range map[string]struct {
		answer error
		waits  bool
	}{
		"deleted":                         {},
		"gone meanwhile":                  {answer: apierrors.NewNotFound(jobs, "other")},
		"a proxy knows no way to the Job": {answer: apierrors.NewGenericServerResponse(http.StatusNotFound, "delete", jobs, "other", "no route", 0, true), waits: true},
		"gone, and a user has made another Job of its name": {answer: apierrors.NewConflict(jobs, "other", errors.New("the UID in the precondition is another")), waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owned := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
				"name": "other", "uid": "u2", "ownerReferences": []any{map[string]any{"uid": "u1"}},
			}}}
			b := &batch{
				uid: "u1", spec: map[string]any{"concurrencyPolicy": "Replace"}, active: []unstructured.Unstructured{owned}, jobs: map[string]int{}, undeleted: tc.answer,
			}
			actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, &reloadtest.Outbox{})
			s, verdict := dueCronJob(true)
			ended := actions.runs.run(t.Context(), &s, verdict, contentOf("hash"))
			assert.Equal(t, tc.waits, ended != nil, "the next attempt lists the Jobs again")
			assert.Equal(t, tc.waits, len(b.jobs) == 0)
			assert.Equal(t, []string{"other u2"}, b.deleted, "no other Job")
		})
	}
}

// The same text is no second Event within an hour, and the active Job is the same one as long as it may not be deleted.
func TestEachReloadWhoseReplacementIsRefusedIsReported(t *testing.T) {
	t.Parallel()
	owned := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": "other", "uid": "u2", "ownerReferences": []any{map[string]any{"uid": "u1"}},
	}}}
	b := &batch{
		uid: "u1", spec: map[string]any{"concurrencyPolicy": "Replace"}, active: []unstructured.Unstructured{owned}, jobs: map[string]int{},
		undeleted: forbidden("Job"),
	}
	out := &reloadtest.Outbox{}
	actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, out)
	for reloads, hash := range []string{"first", "second"} {
		s, verdict := dueCronJob(true)
		for range 2 {
			require.Nil(t, actions.runs.run(t.Context(), &s, verdict, contentOf(hash)), "the reload does not wait for the permission")
		}
		require.Len(t, out.Notes(), reloads+1, "another attempt at the same reload is no news")
		assert.Contains(t, out.Notes()[reloads], "only its next run gets the new configuration: delete job other before job backup-")
	}
}

// An admission policy may refuse the new Job for long: then the Jobs that the schedule starts go on.
func TestRunReplacesNoJobForOneThatIsRefused(t *testing.T) {
	t.Parallel()
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	denied := func(text string) error { return apierrors.NewForbidden(jobs, "backup", errors.New(text)) }
	refused := func(text string) *apierrors.StatusError { return apierrors.NewBadRequest(text) }
	exists := deniedBy(apierrors.NewAlreadyExists(jobs, "another").Status())
	for name, tc := range map[string]struct {
		// tried is the answer to the dry run, refused the one to any creation.
		tried, refused error
		deleted, made  bool
		jobs           int
	}{
		"accepted":                                        {deleted: true, made: true, jobs: 1},
		"a policy denies it":                              {refused: denied("no Jobs here")},
		"the new Job is not valid":                        {refused: refused("no name")},
		"there is no answer":                              {tried: errors.New("away")},
		"the active Job may be what fills a quota":        {tried: denied("exceeded quota: jobs"), deleted: true, made: true, jobs: 1},
		"the quota is full all the same":                  {refused: denied("exceeded quota: jobs"), deleted: true},
		"an admission webhook knows no dry run":           {tried: refused(`admission webhook "x" does not support dry run`), deleted: true, made: true, jobs: 1},
		"the new Job was made since the Jobs were listed": {tried: apierrors.NewAlreadyExists(jobs, "backup"), made: true},
		"a webhook denies it since another object exists": {refused: exists},
		"the same webhook knows no dry run":               {tried: refused(`admission webhook "x" does not support dry run`), refused: exists, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owned := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
				"name": "other", "uid": "u2", "ownerReferences": []any{map[string]any{"uid": "u1"}},
			}}}
			b := &batch{
				uid: "u1", spec: map[string]any{"concurrencyPolicy": "Replace"}, active: []unstructured.Unstructured{owned}, jobs: map[string]int{},
				tried: tc.tried, refused: tc.refused,
			}
			actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, &reloadtest.Outbox{})
			s, verdict := dueCronJob(true)
			ended := actions.runs.run(t.Context(), &s, verdict, contentOf("hash"))
			assert.Equal(t, tc.made, ended == nil)
			assert.Equal(t, tc.made, s.Effects.Run.Job != "")
			assert.Equal(t, tc.deleted, len(b.deleted) == 1)
			assert.Len(t, b.jobs, tc.jobs, "a dry run makes none")
		})
	}
}
