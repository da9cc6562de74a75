package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
)

// The custom resource that is tracked does not exist, so that no graph has it and no change of a graph names it.
func TestAMissingObjectIsReportedWheneverItWasAskedFor(t *testing.T) {
	t.Parallel()
	const event = "ns kafkaproxies.kroxylicious.io/p"
	for name, c := range map[string]struct {
		// ask asks for the object at an unlucky moment.
		ask func(w *world)
	}{
		"before a configuration was read": {func(w *world) {
			assert.Equal(w, "the configuration has not been read yet", w.hold())
			w.Configure(proxyToSecret())
		}},
		"before the configuration is in force": {func(w *world) {
			w.Configure(nil)
			w.pass(time.Second)
			w.Configure(proxyToSecret())
			assert.Equal(w, "its configuration is not in force yet", w.hold())
		}},
		"before there is a digest key": {func(w *world) {
			w.rotate(digest.Ring{})
			w.Configure(proxyToSecret())
			w.pass(time.Second)
			w.rotate(digesttest.Ring(w.T, "1"))
			assert.Equal(w, "no digest key is loaded yet", w.hold())
		}},
		"before another digest key": {func(w *world) {
			w.Configure(proxyToSecret())
			w.pass(time.Second)
			assert.Equal(w, "missing", w.hold())
			w.rotate(digesttest.Ring(w.T, "12"))
		}},
		"before another configuration": {func(w *world) {
			w.Configure(proxyToSecret())
			w.pass(time.Second)
			assert.Equal(w, "missing", w.hold())
			w.Configure(proxyToSecret()[1:])
			w.pass(time.Second)
			w.Configure(proxyToSecret())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				// As the loop does: what is to be read again is asked for.
				w.OnReread(func() { w.State("ns", proxy) })
				c.ask(w)
				w.pass(time.Second)
				w.take()
				w.pass(digest.ReportHoldAfter)
				assert.Contains(t, w.take(), event, "the loop looks once more")
				require.GreaterOrEqual(t, time.Since(w.State("ns", proxy).Hold.Since), digest.ReportHoldAfter, "it is to be reported then")
			})
		})
	}
}

// Without a configuration, what is asked for has no resource. That it has none is known once a configuration has been read.
func TestWorkloadsAreReadAgainWithEachConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rereads := 0
		w.OnReread(func() { rereads++ })
		w.Configure(nil)
		w.pass(time.Second)
		assert.Equal(t, 1, rereads, "the first one, without resources")
		w.Configure(nil)
		w.pass(time.Second)
		assert.Equal(t, 1, rereads, "the same")
		w.Configure(proxyToSecret())
		w.pass(time.Second)
		assert.Equal(t, 2, rereads, "a new resource is no wrong word any more")
		w.Configure(nil)
		w.pass(time.Second)
		assert.Equal(t, 3, rereads, "a change of the graph reports no object that is not in it any more")
	})
}

// Why an object is held may change without it.
func TestAMissingObjectIsLookedAtAgainWhenItsResourceCanBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		install := w.refuse(proxies, apierrors.NewNotFound(proxies.GroupResource(), ""))
		w.Configure(proxyToSecret())
		w.pass(time.Minute)
		assert.Contains(t, w.hold(), "not-installed")
		w.pass(time.Minute)
		w.take()
		w.pass(10 * time.Minute)
		assert.Empty(t, w.take(), "each failure is the same")
		install()
		w.pass(10 * time.Minute)
		assert.Equal(t, []string{"ns kafkaproxies.kroxylicious.io/p", "ns kafkaproxies.kroxylicious.io/p"}, w.take(),
			"at once, and when it is to be reported")
		assert.Equal(t, "missing", w.hold())
	})
}

// A graph under other keys answers nothing before it is evaluated.
func TestAnswersWhileTheKeysRotate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		older, want := digesttest.Ring(t, "1").Keys()[0].ID, w.entry()
		for i := range 30 {
			w.rotate(digesttest.Ring(t, "12"[:1+i%2]))
			applied := make(chan struct{})
			go func() {
				defer close(applied)
				w.ApplyPending(t.Context())
			}()
			for asking := true; asking; {
				select {
				case <-applied:
					asking = false
				default:
				}
				if state := w.State("ns", proxy); state.Hold == nil {
					require.Equal(t, want, state.Entries[older], "of rotation %d", i)
				}
			}
		}
		w.pass(time.Second)
		assert.Equal(t, want, w.State("ns", proxy).Entries[older])
	})
}
