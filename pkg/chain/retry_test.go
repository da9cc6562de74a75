package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// lists counts the lists of a resource from now on.
func (w *world) lists(resource string) func() int {
	n := 0
	w.client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		n++
		return false, nil, nil
	})
	return func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return n
	}
}

// refused returns when the API server last refused what the proxy depends on.
func (w *world) refused() time.Time {
	w.Helper()
	state := w.State("ns", proxy)
	require.NotNil(w, state.Hold)
	return state.Hold.Refused
}

// ask asks again a second after the last refusal, and waits for what takes as long as one answer: changes gather for 200 ms at most.
func (w *world) ask() {
	w.Helper()
	for w.hold() != "" && time.Since(w.refused()) < time.Second {
		w.pass(100 * time.Millisecond)
	}
	unknown := reference.Ref{Kind: "widgets.example.org", Name: "w"} // the configuration does not have it
	w.Retry("ns", []reference.Ref{unknown, proxy})
	w.pass(300 * time.Millisecond)
}

func TestRetryListsAtOnceWhatWasRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		entry := w.entry()
		for range 10 { // by itself, a list is repeated after up to a minute
			allow := w.refuse(services, apierrors.NewForbidden(services.GroupResource(), "", nil))
			w.Watching(services).Refused(t.Context())
			w.pass(time.Minute)
			refused := w.refused()
			w.ask()
			assert.True(t, w.refused().After(refused), "it is known that it was refused again")
			allow()
			w.ask()
			assert.Equal(t, entry, w.entry())
		}
	})
}

func TestRetryReadsAtOnceAConfigObjectThatWasRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		entry := w.entry()
		fail := func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failing = err
		}
		fail(apierrors.NewForbidden(services.GroupResource(), "tls", nil))
		w.set(tls, "2")
		w.pass(2 * time.Second)
		require.Contains(t, w.hold(), "it may not be read")
		refused := w.refused()
		require.False(t, refused.IsZero(), "the time of the refusal is known")

		w.ask()
		assert.Greater(t, w.refused(), refused, "it was read, and refused, again")
		fail(nil)
		w.ask()
		assert.NotEqual(t, entry, w.entry())
	})
}

// Many workloads, and each caller who can reach the webhook, can ask.
func TestRetriesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.Retry("ns", []reference.Ref{proxy})
		w.refuse(services, apierrors.NewForbidden(services.GroupResource(), "", nil))
		lists := w.lists("kafkaservices")
		w.Watching(services).Refused(t.Context())
		w.pass(time.Minute)
		before := lists()
		for range 600 {
			w.Retry("ns", []reference.Ref{proxy})
			w.pass(100 * time.Millisecond)
		}
		assert.InDelta(t, 55, lists()-before, 10, "once a second at most, and 12 without")
	})
}

// A held resource for which nothing was refused is not listed again.
func TestRetryLeavesAloneWhatIsNotRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		lists := w.lists("*")
		w.put(services, "s", map[string]any{"secret": "missing"})
		w.pass(time.Second)
		require.NotEmpty(t, w.hold())
		assert.Zero(t, w.refused())
		reads := w.readCount()
		w.Retry("ns", []reference.Ref{proxy, {Kind: "unknown.example.com", Name: "x"}})
		w.pass(5 * time.Second)
		assert.Zero(t, lists())
		assert.Equal(t, reads, w.readCount())
	})
}
