package chain_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// late is a world whose watches deliver nothing behind the first list.
type late struct {
	*world
	lists, silent atomic.Int32
	// known is what the watches of config objects have delivered, rechecked what was read again.
	known     digest.State
	rechecked []string
}

func newLate(t *testing.T) *late {
	t.Helper()
	w := &late{world: newWorld(t)}
	w.listed = func(context.Context, int64) error { w.lists.Add(1); return nil }
	w.client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		return w.silent.Load() > 0, watch.NewFake(), nil
	})
	return w
}

func (w *late) Cached(_ string, refs []reference.Ref) map[reference.Ref]digest.State {
	known := map[reference.Ref]digest.State{}
	for _, ref := range refs {
		known[ref] = w.known
	}
	return known
}

func (w *late) Recheck(_ context.Context, namespace string, ref reference.Ref) error {
	w.rechecked = append(w.rechecked, namespace+" "+ref.String())
	return nil
}

// The API server that has answered a watch can be behind the others for as long as the watch is open.
func TestCustomResourceWhoseWatchIsBehindIsListedAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*late){
		"changed": func(w *late) { w.put(services, "s", map[string]any{"secret": "other"}) },
		"deleted": func(w *late) {
			require.NoError(w, w.client.Tracker().Delete(services, "ns", "s"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newLate(t)
				w.silent.Store(1)
				w.graph()
				w.pass(time.Minute)
				before := w.State("ns", proxy)
				require.NotEmpty(t, before.Entries)
				w.contents[reference.Ref{Kind: reference.Secret, Name: "other"}] = "2"
				change(w)
				w.pass(time.Minute)
				require.Equal(t, before.Entries, w.State("ns", proxy).Entries, "the watch delivers nothing")
				lists := w.lists.Load()
				w.known = digest.State{UID: "u", ResourceVersion: "1"}
				require.NoError(t, chain.RecheckBelow(t.Context(), w, w.Chain, "ns", proxy))
				w.pass(time.Second)
				live, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
				require.NoError(t, err)
				assert.Equal(t, live[proxy].Entries, w.State("ns", proxy).Entries)
				assert.NotEqual(t, before.Entries, live[proxy].Entries)
				assert.Equal(t, lists+1, w.lists.Load(), "the other resource is as its watch has delivered it")
				assert.Empty(t, w.rechecked, "so are the config objects")
			})
		})
	}
}

// Each workload that depends on it may ask, again and again.
func TestCustomResourceWhoseWatchIsNotBehindIsNotListedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLate(t)
		w.graph()
		lists := w.lists.Load()
		for range 100 {
			w.known = digest.State{UID: "u", ResourceVersion: "1"}
			require.NoError(t, chain.RecheckBelow(t.Context(), w, w.Chain, "ns", proxy))
			w.pass(time.Second)
		}
		assert.Equal(t, lists, w.lists.Load())
	})
}

func TestListsOfACustomResourceWhoseWatchIsAlwaysBehindArePaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLate(t)
		w.silent.Store(1)
		w.graph()
		lists := w.lists.Load()
		for n := range 600 {
			w.put(services, "s", map[string]any{"secret": "tls", "n": int64(n)})
			require.NoError(t, chain.RecheckBelow(t.Context(), w, w.Chain, "ns", proxy))
			w.pass(time.Second)
		}
		assert.LessOrEqual(t, w.lists.Load()-lists, int32(20), "as after watches that fail")
	})
}

func TestConfigObjectBelowACustomResourceWhoseWatchIsBehindIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLate(t)
		w.graph()
		w.known = digest.State{Absent: true}
		require.NoError(t, chain.RecheckBelow(t.Context(), w, w.Chain, "ns", proxy))
		assert.Equal(t, []string{"ns secret/tls"}, w.rechecked)
	})
}

func TestRecheckOfACustomResourceThatCannotBeReadFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLate(t)
		w.graph()
		w.unanswered.Store(true)
		assert.ErrorIs(t, chain.RecheckBelow(t.Context(), w, w.Chain, "ns", proxy), context.DeadlineExceeded)
	})
}

// What is below a custom resource may be much, and other resources may refer to it as well.
func TestWhatIsBelowACustomResourceIsReadOnceEachWhileItsWatchFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLate(t)
		w.silent.Store(1)
		var names []any
		for n := range 60 {
			name := fmt.Sprintf("s%02d", n)
			names = append(names, name)
			w.put(services, name, map[string]any{"secret": "tls"})
		}
		for _, root := range []string{"p", "q"} {
			w.put(proxies, root, map[string]any{"services": names})
		}
		definitions := proxyToSecret()
		definitions[1].Refs[0].Name = "spec.services[*]"
		w.contents[tls] = "1"
		w.Configure(definitions)
		w.pass(time.Minute)
		before, lists := w.entry(), w.lists.Load()
		w.contents[reference.Ref{Kind: reference.Secret, Name: "other"}] = "2"
		w.put(services, "s59", map[string]any{"secret": "other"})
		var gets atomic.Int32
		w.getting = func(context.Context) error { gets.Add(1); return nil }
		configReads := w.readCount()
		all := []reference.Ref{proxy, {Kind: proxy.Kind, Name: "q"}}
		for _, ref := range w.Referred()["ns"] {
			if ref.Kind.Custom() {
				all = append(all, ref)
			}
		}
		for _, ref := range all {
			require.NoError(t, chain.Store{Chain: w.Chain}.Recheck(t.Context(), "ns", ref))
		}
		assert.Equal(t, int32(62), gets.Load())
		assert.Equal(t, configReads, w.readCount(), "the watches of config objects work")
		w.pass(time.Second)
		assert.Equal(t, lists+1, w.lists.Load())
		assert.NotEqual(t, before, w.entry())
	})
}

func TestReadsThatHangWhileAWatchFailsHoldUpNoReload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newLate(t)
		w.graph()
		var hang atomic.Bool
		w.getting = func(ctx context.Context) error {
			if hang.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		hang.Store(true)
		ended := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			go func() { ended <- chain.Store{Chain: w.Chain}.Recheck(ctx, "ns", proxy) }()
		}
		synctest.Wait()
		hang.Store(false)
		began := time.Now()
		require.NoError(t, chain.RecheckBelow(t.Context(), w, w.Chain, "ns", proxy))
		assert.Zero(t, time.Since(began))
		cancel()
		for range 100 {
			require.Error(t, <-ended)
		}
	})
}
