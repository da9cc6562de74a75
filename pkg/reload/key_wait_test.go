package reload

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// single has one workload only, whatever is asked for.
type single struct{ workload workload.Summary }

func (s single) Run(ctx context.Context) { <-ctx.Done() }

func (s single) Get(_, _ string) (workload.Summary, bool) { return s.workload, true }

func TestWorkloadsWaitForADigestKeyWithoutPolling(t *testing.T) {
	t.Parallel()
	kinds := workload.NewKinds(workload.Builtin()...)
	kind := kinds.Find("deployment")[0]
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	writes, keys := &refusing{}, &fakeKeys{}
	with := cluster{client: writes, events: &sent{}, Dependencies: Dependencies{
		Store: &blind{states: map[reference.Ref]digest.State{app: {Absent: true}}}, Keys: keys,
	}}
	with.Workloads = func(kind workload.Kind, _ func(before, after workload.Summary)) Workloads {
		return single{summaryOf(kind, map[string]any{
			"metadata": map[string]any{
				"namespace": "shop", "name": "web", "annotations": map[string]any{annotation.DefaultPrefix + "configmaps": "app"},
			},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
		})}
	}
	l, q := leading(t, with, Options{})
	follow(t, l, refresh.NewKinds(kinds))
	key := workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "web"}
	l.tracking.index.Set(key, []reference.Ref{app})

	result, err := l.Reconcile(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, reconcile.Result{}, result, "the change of the keys queues it")
	require.Zero(t, q.Len())

	keys.ring = ringOf(t, "a")
	l.tracking.queueAll()
	require.Equal(t, 1, q.Len())
	_, err = l.Reconcile(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, 1, writes.writes, "with a key it is adopted")
}
