package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// A leader makes the Job of a reload and ends before the reload is stored. That Job has finished, and the schedule has started another
// one, when the next leader repeats the reload. The two Jobs fill a quota.
func TestRunThatHasFinishedIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Replace", "Forbid"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := &batch{uid: "u1", spec: map[string]any{"concurrencyPolicy": policy}, jobs: map[string]int{}}
			leader := func() *Actions {
				return newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, &reloadtest.Outbox{})
			}
			first, verdict := dueCronJob(true)
			require.Nil(t, leader().runs.run(t.Context(), &first, verdict, contentOf("hash")))
			owner := []any{map[string]any{"uid": "u1"}}
			b.active = []unstructured.Unstructured{
				{Object: map[string]any{
					"metadata": map[string]any{"name": first.Effects.Run.Job, "ownerReferences": owner},
					"status":   map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}},
				}},
				{Object: map[string]any{"metadata": map[string]any{"name": "scheduled", "ownerReferences": owner}}},
			}
			b.tried = apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "backup", errors.New("exceeded quota: jobs"))
			again, verdict := dueCronJob(true)
			assert.Nil(t, leader().runs.run(t.Context(), &again, verdict, contentOf("hash")), "the stamp does not wait")
			assert.Equal(t, first.Effects.Run.Job, again.Effects.Run.Job, "the reload names the Job")
			assert.Len(t, b.jobs, 1)
			assert.Empty(t, b.deleted, "the scheduled Job goes on")
		})
	}
}

// Another leader has reloaded the CronJob, and made the Job of that reload. The watch of this process, which was frozen, does not show it.
func TestRunWaitsForTheLastReloadThatIsStored(t *testing.T) {
	t.Parallel()
	b := &batch{uid: "u1", jobs: map[string]int{}, reload: "2"}
	actions := newActions(Options{Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b}, Client: b}, &reloadtest.Outbox{})
	s, verdict := dueCronJob(true)
	s.View.Managed = stamp.Managed{stamp.LastReload: "1"}
	ended := actions.runs.run(t.Context(), &s, verdict, contentOf("hash"))
	require.NotNil(t, ended)
	assert.Equal(t, time.Second, ended.close(t.Context(), actions.base).RequeueAfter)
	assert.Empty(t, b.jobs, "the content may be that of the Job that was made")
}
