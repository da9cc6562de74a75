package reload

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// hanging is a client whose writes hang.
type hanging struct {
	client.Client
	writes int
	body   string
}

func (h *hanging) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	h.writes++
	body, _ := patch.Data(obj)
	h.body = string(body)
	<-ctx.Done()
	return ctx.Err()
}

// dueLoop is a loop with a workload whose reload is due.
func dueLoop(t *testing.T, with loopDependencies, opts Options) (*loop, gather.Subject) {
	t.Helper()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	content := digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "1", ring)
	opts.Webhook = true
	with.Store, with.Keys = &reloadtest.Store{States: map[reference.Ref]digest.State{app: content}}, &reloadtest.Keys{Present: ring}
	if with.Events == nil {
		with.Events = &reloadtest.Outbox{}
	}
	l := newLoop(with, opts)
	s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: reloadtest.View(t)}
	s.View.Managed = stamp.Managed{stamp.Record: "v1:-:" + string(newest.ID) + ":configmap/app=-"}
	s.Object = reloadtest.Summary(workload.Kind{}, map[string]any{"metadata": map[string]any{"name": "web", "namespace": "shop"}})
	return l, s
}

func TestWriteThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &hanging{}
		out := &reloadtest.Outbox{}
		l, s := dueLoop(t, loopDependencies{client: c, Dependencies: Dependencies{Events: out}}, Options{})
		start := time.Now()
		result := l.actions.Close(t.Context(), l.decide(t.Context(), s))
		assert.Equal(t, 10*time.Second, time.Since(start))
		assert.Equal(t, 25*time.Millisecond, result.RequeueAfter, "what is due stays due")
		assert.Equal(t, queue.Retry, *result.Priority)
		notes := out.Notes()
		require.Len(t, notes, 1, "it is reported")
		assert.Contains(t, notes[0], "admission webhook")
		l.actions.ReleaseSlot(s.Key)
		assert.False(t, l.actions.MayWrite(gather.Subject{Key: workload.Key{Namespace: "shop", Name: "a"}}, inflight.Urgent) &&
			l.actions.MayWrite(gather.Subject{Key: workload.Key{Namespace: "shop", Name: "b"}}, inflight.Urgent), "the namespace has one slot")
	})
}

func TestWorkloadWithoutASlotHoldsNoWorker(t *testing.T) {
	t.Parallel()
	c, registry := &hanging{}, prometheus.NewRegistry()
	l, s := dueLoop(t, loopDependencies{client: c, Dependencies: Dependencies{Metrics: registry}}, Options{})
	q := reloadtest.Open(t, l.queue)
	l.leads.Begin(time.Now())
	other := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "other"}}
	require.True(t, l.actions.MayWrite(other, inflight.Urgent), "the only slot of the namespace is free")
	result := l.actions.Close(t.Context(), l.decide(t.Context(), s))
	assert.Zero(t, result.RequeueAfter, "it does not poll")
	assert.Zero(t, c.writes)
	_, due := l.state.Due.Oldest()
	assert.Equal(t, 1, due, "it shows as due while it waits")
	l.actions.ReleaseSlot(s.Key)
	l.actions.ReleaseSlot(other.Key)
	require.Equal(t, 1, q.Len(), "it is queued when it has a slot")
	key, _ := q.Get()
	assert.Equal(t, s.Key, key)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pod_reloader_writes_in_flight Workloads with a slot for their writes: at most 64, and 128 more that have hung for a while; at most 8 in a namespace.
# TYPE pod_reloader_writes_in_flight gauge
pod_reloader_writes_in_flight 1
`), "pod_reloader_writes_in_flight"), "which is reserved for it")
}

func TestRequestUnderConstantChangeAsksForTheLiveState(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		last time.Duration
		live bool
	}{
		"the configuration has settled": {last: time.Second},
		"settle-max ran out":            {live: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &hanging{}
				l, s := dueLoop(t, loopDependencies{client: c}, Options{Settle: time.Second, SettleMax: 5 * time.Second})
				s.Events = state.Arrivals{First: time.Now().Add(-time.Minute), FirstUnhandled: time.Now().Add(-time.Minute), Last: time.Now().Add(-tc.last)}
				l.actions.Close(t.Context(), l.decide(t.Context(), s))
				require.Equal(t, 1, c.writes)
				assert.Equal(t, tc.live, strings.Contains(c.body, "live@"), c.body)
			})
		})
	}
}

func TestWaitAtTheSettleGateIsRecorded(t *testing.T) {
	t.Parallel()
	l, s := dueLoop(t, loopDependencies{client: &hanging{}}, Options{Settle: time.Minute, SettleMax: 5 * time.Minute})
	now := time.Now()
	l.state.Changes.EventArrived(s.Key, now)
	s.Events = l.state.Changes.BeginAttempt(s.Key)
	result := l.actions.Close(t.Context(), l.decide(t.Context(), s))
	require.Positive(t, result.RequeueAfter)
	assert.Equal(t, queue.Config, *result.Priority)
	looks, later := l.state.Changes.EventArrivedFor([]workload.Key{s.Key}, now.Add(time.Second))
	assert.Empty(t, looks, "a further event needs no look before that")
	assert.Empty(t, later)
}
