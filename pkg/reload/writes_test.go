package reload

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
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
func dueLoop(t *testing.T, c client.Client) (*loop, subject) {
	t.Helper()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := ringOf(t, "a")
	newest, _ := ring.Newest()
	content := digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "1", ring)
	l := &loop{
		store: &blind{states: map[reference.Ref]digest.State{app: content}}, keys: &fakeKeys{ring: ring}, client: c,
		memory: newMemory(), backoff: newBackoff(), now: time.Now, events: &sent{}, opts: Options{Webhook: true},
	}
	l.writes = newWrites(l)
	l.metrics = newMetrics(prometheus.NewRegistry(), l.memory, l.now)
	s := subject{key: Key{Namespace: "shop", Name: "web"}, view: viewOf(t)}
	s.view.Marks = stamp.Marks{stamp.Record: "v1:-:" + string(newest.ID) + ":configmap/app=-"}
	s.object = summaryOf(workload.Kind{}, map[string]any{"metadata": map[string]any{"name": "web", "namespace": "shop"}})
	return l, s
}

func TestWriteThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &hanging{}
		l, s := dueLoop(t, c)
		start := time.Now()
		result := l.treat(t.Context(), s)
		assert.Equal(t, writeLimit, time.Since(start))
		assert.Equal(t, firstSoon, result.RequeueAfter, "what is due stays due")
		assert.Equal(t, priorityRetry, *result.Priority)
		notes := l.events.(*sent).notes()
		require.Len(t, notes, 1, "the user is told")
		assert.Contains(t, notes[0], "admission webhook")
		l.writes.Leave(s.key)
		assert.False(t, l.mayWrite(subject{key: Key{Namespace: "shop", Name: "a"}}, inflight.Urgent) &&
			l.mayWrite(subject{key: Key{Namespace: "shop", Name: "b"}}, inflight.Urgent), "the namespace has one slot")
	})
}

func TestWorkloadWithoutASlotHoldsNoWorker(t *testing.T) {
	t.Parallel()
	c := &hanging{}
	l, s := dueLoop(t, c)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Key]())
	l.queue.Store(&queue{q})
	now := time.Now()
	l.leads.Store(&now)
	other := subject{key: Key{Namespace: "shop", Name: "other"}}
	require.True(t, l.mayWrite(other, inflight.Urgent))
	result := l.treat(t.Context(), s)
	assert.Zero(t, result.RequeueAfter, "it does not poll")
	assert.Zero(t, c.writes)
	_, due := l.memory.OldestDue()
	assert.Equal(t, 1, due, "it shows as due while it waits")
	l.writes.Leave(s.key)
	l.writes.Leave(other.key)
	require.Equal(t, 1, q.Len(), "it is queued when it has a slot")
	key, _ := q.Get()
	assert.Equal(t, s.key, key)
	assert.Equal(t, 1, l.writes.InFlight(), "which is reserved for it")
}

func TestRetryWaitsBehindFirstAttempts(t *testing.T) {
	t.Parallel()
	l, s := dueLoop(t, nil)
	var order []Key
	l.writes = inflight.New(inflight.Options{}, func(key Key) { order = append(order, key) })
	blocks, first := subject{key: Key{Namespace: "shop", Name: "blocks"}}, subject{key: Key{Namespace: "shop", Name: "first"}}
	require.True(t, l.mayWrite(blocks, inflight.Urgent))
	l.backoff.when(s.key, trouble{})
	require.False(t, l.mayWrite(s, inflight.Urgent))
	require.False(t, l.mayWrite(first, inflight.Background))
	l.writes.Leave(s.key)
	l.writes.Leave(first.key)
	l.writes.Leave(blocks.key)
	assert.Equal(t, []Key{first.key}, order)
}

func TestAnsweredWriteIsNoHangingOne(t *testing.T) {
	t.Parallel()
	l, s := dueLoop(t, nil)
	denied := errors.New("denied")
	err := l.write(t.Context(), s, func(context.Context) error { return denied })
	require.ErrorIs(t, err, denied)
	require.NotErrorIs(t, err, errNoAnswer)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = l.write(ended, s, func(ctx context.Context) error { return ctx.Err() })
	assert.NotErrorIs(t, err, errNoAnswer, "the process ends")
}

func TestRequestUnderConstantChangeAsksForTheLiveState(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		last time.Duration
		live bool
	}{
		"it has settled":     {last: time.Second},
		"settle-max ran out": {live: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &hanging{}
				l, s := dueLoop(t, c)
				l.gates = gates{settle: time.Second, settleMax: 5 * time.Second}
				s.events = arrivals{first: time.Now().Add(-time.Minute), unacted: time.Now().Add(-time.Minute), last: time.Now().Add(-tc.last)}
				l.treat(t.Context(), s)
				require.Equal(t, 1, c.writes)
				assert.Equal(t, tc.live, strings.Contains(c.body, "live@"), c.body)
			})
		})
	}
}

func TestWaitAtTheSettleGateIsNoted(t *testing.T) {
	t.Parallel()
	l, s := dueLoop(t, &hanging{})
	l.gates = gates{settle: time.Minute, settleMax: 5 * time.Minute}
	now := time.Now()
	l.memory.Changed(s.key, now)
	s.events = l.memory.Attempt(s.key)
	result := l.treat(t.Context(), s)
	require.Positive(t, result.RequeueAfter)
	assert.Equal(t, priorityConfig, *result.Priority)
	assert.True(t, l.memory.Changed(s.key, now.Add(time.Second)), "a further event needs no look before that")
}
