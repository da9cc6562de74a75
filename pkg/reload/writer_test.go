package reload

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
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
func dueLoop(t *testing.T, with cluster, opts Options) (*loop, gather.Subject) {
	t.Helper()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := ringOf(t, "a")
	newest, _ := ring.Newest()
	content := digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "1", ring)
	opts.Webhook = true
	with.Store, with.Keys = &blind{states: map[reference.Ref]digest.State{app: content}}, &fakeKeys{ring: ring}
	if with.events == nil {
		with.events = &sent{}
	}
	l := newLoop(with, opts)
	s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: viewOf(t)}
	s.View.Managed = stamp.Managed{stamp.Record: "v1:-:" + string(newest.ID) + ":configmap/app=-"}
	s.Object = summaryOf(workload.Kind{}, map[string]any{"metadata": map[string]any{"name": "web", "namespace": "shop"}})
	return l, s
}

func TestWriteThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &hanging{}
		out := &sent{}
		l, s := dueLoop(t, cluster{client: c, events: out}, Options{})
		start := time.Now()
		result := l.reconcile(t.Context(), s).close(t.Context(), l.actions)
		assert.Equal(t, writeLimit, time.Since(start))
		assert.Equal(t, 25*time.Millisecond, result.RequeueAfter, "what is due stays due")
		assert.Equal(t, queue.Retry, *result.Priority)
		notes := out.notes()
		require.Len(t, notes, 1, "it is reported")
		assert.Contains(t, notes[0], "admission webhook")
		l.actions.slots.Leave(s.Key)
		assert.False(t, l.actions.MayWrite(gather.Subject{Key: workload.Key{Namespace: "shop", Name: "a"}}, inflight.Urgent) &&
			l.actions.MayWrite(gather.Subject{Key: workload.Key{Namespace: "shop", Name: "b"}}, inflight.Urgent), "the namespace has one slot")
	})
}

func TestWorkloadWithoutASlotHoldsNoWorker(t *testing.T) {
	t.Parallel()
	c := &hanging{}
	l, s := dueLoop(t, cluster{client: c}, Options{})
	q := open(t, l)
	l.leads.Begin(time.Now())
	other := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "other"}}
	require.True(t, l.actions.MayWrite(other, inflight.Urgent))
	result := l.reconcile(t.Context(), s).close(t.Context(), l.actions)
	assert.Zero(t, result.RequeueAfter, "it does not poll")
	assert.Zero(t, c.writes)
	_, due := l.state.Due.Oldest()
	assert.Equal(t, 1, due, "it shows as due while it waits")
	l.actions.slots.Leave(s.Key)
	l.actions.slots.Leave(other.Key)
	require.Equal(t, 1, q.Len(), "it is queued when it has a slot")
	key, _ := q.Get()
	assert.Equal(t, s.Key, key)
	assert.Equal(t, 1, l.actions.slots.InFlight(), "which is reserved for it")
}

func TestRetryWaitsBehindFirstAttempts(t *testing.T) {
	t.Parallel()
	l, s := dueLoop(t, cluster{}, Options{})
	var order []workload.Key
	l.actions.slots = inflight.New(inflight.Options{}, func(key workload.Key) { order = append(order, key) })
	blocks, first := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "blocks"}}, gather.Subject{Key: workload.Key{Namespace: "shop", Name: "first"}}
	require.True(t, l.actions.MayWrite(blocks, inflight.Urgent))
	l.backoff.When(s.Key, state.Rarely)
	require.False(t, l.actions.MayWrite(s, inflight.Urgent))
	require.False(t, l.actions.MayWrite(first, inflight.Background))
	l.actions.slots.Leave(s.Key)
	l.actions.slots.Leave(first.Key)
	l.actions.slots.Leave(blocks.Key)
	assert.Equal(t, []workload.Key{first.Key}, order)
}

func TestAnsweredWriteIsNoHangingOne(t *testing.T) {
	t.Parallel()
	l, s := dueLoop(t, cluster{}, Options{})
	denied := errors.New("denied")
	err := l.actions.write(t.Context(), s, func(context.Context) error { return denied })
	require.ErrorIs(t, err, denied)
	require.NotErrorIs(t, err, errNoAnswer)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = l.actions.write(ended, s, func(ctx context.Context) error { return ctx.Err() })
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
				l, s := dueLoop(t, cluster{client: c}, Options{Settle: time.Second, SettleMax: 5 * time.Second})
				s.Events = state.Arrivals{First: time.Now().Add(-time.Minute), Unacted: time.Now().Add(-time.Minute), Last: time.Now().Add(-tc.last)}
				l.reconcile(t.Context(), s).close(t.Context(), l.actions)
				require.Equal(t, 1, c.writes)
				assert.Equal(t, tc.live, strings.Contains(c.body, "live@"), c.body)
			})
		})
	}
}

func TestWaitAtTheSettleGateIsRecorded(t *testing.T) {
	t.Parallel()
	l, s := dueLoop(t, cluster{client: &hanging{}}, Options{Settle: time.Minute, SettleMax: 5 * time.Minute})
	now := time.Now()
	l.state.Changes.Changed(s.Key, now)
	s.Events = l.state.Changes.Attempt(s.Key)
	result := l.reconcile(t.Context(), s).close(t.Context(), l.actions)
	require.Positive(t, result.RequeueAfter)
	assert.Equal(t, queue.Config, *result.Priority)
	assert.True(t, l.state.Changes.Changed(s.Key, now.Add(time.Second)), "a further event needs no look before that")
}
