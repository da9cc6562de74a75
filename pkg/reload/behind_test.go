package reload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// What the loop has decided from its caches is decided again from what is live before a Job is deleted.
func TestJobIsDeletedOnlyIfItsReloadIsStillDue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile func(j *jobScene)
		want      []string
		again     bool
	}{
		"the Job is gone":                 {meanwhile: func(j *jobScene) { delete(j.api.objects, jobName) }},
		"the configuration is back":       {meanwhile: func(j *jobScene) { j.set("old") }, again: true},
		"the configuration changed again": {meanwhile: func(j *jobScene) { j.set("newer") }, want: recreationSteps},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobScene(t, nil, nil)
			l := j.leader(t)
			cached, _ := jobWatch{j}.Get("shop", "import")
			s := l.gather.Subject(workload.Key{Kind: jobKind.ID(), Namespace: "shop", Name: "import"}, cached, state.Arrivals{})
			tc.meanwhile(j)
			result := l.actions.Close(t.Context(), l.actions.Reload(t.Context(), s, policy.Input{}, policy.Verdict{}))
			assert.ElementsMatch(t, tc.want, j.writes())
			assert.Equal(t, tc.again, result.RequeueAfter > 0)
			assert.Len(t, j.notes(), min(1, len(tc.want)), "without a reload there is nothing to report")
		})
	}
}

// The answer to the creation of a Job may be that another one was faster: whose it is, the next look says.
func TestJobThatIsCreatedMeanwhileIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	j, l := begun(t)
	j.api.before = func(call string) error {
		if call == "create Job" {
			j.api.store(j.job(nil, nil))
		}
		return nil
	}
	assert.Positive(t, j.reconcile(t, l).RequeueAfter)
	assert.Empty(t, j.notes(), "what passes by itself is not reported")
	j.api.before = nil
	j.reconcile(t, l)
	require.Len(t, j.notes(), 1)
	assert.Contains(t, j.notes()[0], "RecreationDropped: another Job of this name was created")
	assert.Len(t, j.api.objects, 1, "the Secret is gone")
}

// Two installations with different keys that select one workload do not overwrite each other's Records for ever.
func TestRecordUnderAForeignKeyIsAdoptedOnce(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	foreign := j.stored().GetAnnotations()[annotation.DefaultPrefix+"config-record"]
	j.ring = reloadtest.Ring(t, "b")
	j.set("new")
	l := j.leader(t)
	require.NotEmpty(t, j.due(t).Foreign)
	j.reconcile(t, l)
	require.Equal(t, []string{"patch Job"}, j.writes(), "a lost key restarts nothing")
	require.Equal(t, policy.Nothing, j.due(t).Action)
	require.Empty(t, j.due(t).Foreign)

	j.api.calls = nil
	j.annotate(annotation.DefaultPrefix+"config-record", foreign)
	assert.Positive(t, j.reconcile(t, l).RequeueAfter)
	assert.Empty(t, j.writes())
	require.NotEmpty(t, j.notes())
	assert.Contains(t, j.notes()[len(j.notes())-1], "ForeignDigestKey: ")
}
