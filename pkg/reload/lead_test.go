package reload

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// What the former leader may have dealt with is compared, and does not wait for ever behind what changes.
func TestNewLeaderLooksAtWhatItKnowsAsAStandby(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kind := workload.Deployment()
		web := reloadtest.Summary(kind, map[string]any{"metadata": map[string]any{
			"namespace": "shop", "name": "web", "annotations": map[string]any{annotation.DefaultPrefix + "configmaps": app.Name},
		}})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		l := newLoop(loopDependencies{client: &refusing{}, apiReader: &refusing{}, Dependencies: Dependencies{
			Events: &reloadtest.Outbox{}, Store: &reloadtest.Store{}, Keys: &reloadtest.Keys{},
			Workloads: func(_ workload.Kind, changed func(before, after workload.Summary, listed string)) tracking.Workloads {
				changed(workload.Summary{}, web, "")
				return single{web}
			},
		}}, Options{Reader: reloadtest.Reader()})
		q := priorityqueue.New[workload.Key]("test")
		defer q.ShutDown()
		var to workqueue.TypedRateLimitingInterface[workload.Key] = q
		require.NoError(t, l.queue.Source(func(context.Context) {}).Start(ctx, to))
		l.tracking.Follow(ctx, refresh.NewKinds(workload.NewKinds(kind)))
		l.state.Changes.EventArrived(web.Key(), time.Now())
		synctest.Wait()
		require.Zero(t, q.Len())

		go func() { assert.NoError(t, l.lead(ctx)) }()
		<-time.After(10 * time.Second)
		require.Equal(t, 1, q.Len())
		key, priority, _ := q.GetWithPriority()
		assert.Equal(t, web.Key(), key)
		assert.Equal(t, queue.Config, priority, "it has waited for long")
		assert.False(t, l.state.Changes.HasPending(key), "the former leader may have acted on it")
	})
}

func TestNothingIsKeptOfAWorkloadThatIsGone(t *testing.T) {
	t.Parallel()
	l, s := dueLoop(t, loopDependencies{client: &refusing{}}, Options{})
	l.state.Due.Add(s.Key, time.Now())
	_, err := l.Reconcile(t.Context(), s.Key)
	require.NoError(t, err)
	_, due := l.state.Due.Oldest()
	assert.Zero(t, due)
}
