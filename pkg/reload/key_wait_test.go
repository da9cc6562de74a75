package reload

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// single has one workload only, whatever is asked for.
type single struct{ workload workload.Summary }

func (s single) Run(ctx context.Context) { <-ctx.Done() }

func (s single) Get(_, _ string) (workload.Summary, bool) { return s.workload, true }

func TestWorkloadsWaitForADigestKeyWithoutPolling(t *testing.T) {
	t.Parallel()
	kind := workload.DaemonSet()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	writes, keys := &refusing{}, &reloadtest.Keys{}
	with := loopDependencies{client: writes, Dependencies: Dependencies{
		Events: &reloadtest.Outbox{},
		Store:  &reloadtest.Store{States: map[reference.Ref]digest.State{app: {Absent: true}}}, Keys: keys,
	}}
	with.Workloads = func(kind workload.Kind, changed func(before, after workload.Summary, listed string)) tracking.Workloads {
		web := reloadtest.Summary(kind, map[string]any{
			"metadata": map[string]any{
				"namespace": "shop", "name": "web", "annotations": map[string]any{annotation.DefaultPrefix + "configmaps": "app"},
			},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
		})
		changed(workload.Summary{}, web, "")
		return single{web}
	}
	l, q := leading(t, with, Options{})
	l.tracking.Follow(t.Context(), refresh.NewKinds(workload.NewKinds(kind)))
	key := workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "web"}
	taken, _ := q.Get()
	require.Equal(t, key, taken)
	q.Done(taken)

	result, err := l.Reconcile(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, reconcile.Result{}, result, "the change of the keys queues it")
	require.Zero(t, q.Len())

	keys.Present = digesttest.Ring(t, "a")
	l.tracking.QueueAll()
	require.Equal(t, 1, q.Len())
	_, err = l.Reconcile(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, 1, writes.writes, "with a key it is adopted")
}

// leading returns a loop that leads, with its queue.
func leading(t *testing.T, with loopDependencies, opts Options) (*loop, workqueue.TypedRateLimitingInterface[workload.Key]) {
	t.Helper()
	opts.Reader = reloadtest.Reader()
	l := newLoop(with, opts)
	q := reloadtest.Open(t, l.queue)
	l.leads.Begin(time.Now())
	return l, q
}
