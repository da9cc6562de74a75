package chain_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// The graph answers for more than 50 objects. While it waits for a read, what it knows of the objects above is older than what the
// watches have delivered: a reload request that was verified with it would be followed by a second restart.
func TestMoreThanFiftyObjectsAreUnverifiedDuringARead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		definitions := proxyToSecret()
		definitions[1].Refs[0].Name = "spec.services[*]"
		names := []any{"with-secret"}
		w.put(services, "with-secret", map[string]any{"secret": "tls"})
		for n := range 60 {
			names = append(names, fmt.Sprint("s", n))
			w.put(services, fmt.Sprint("s", n), map[string]any{})
		}
		w.put(proxies, "p", map[string]any{"services": names})
		w.put(proxies, "other", map[string]any{"services": names[1:]})
		w.contents[tls] = "1"
		w.Configure(definitions)
		w.pass(time.Second)
		before := w.State("ns", proxy).Entries
		require.NotEmpty(t, before)
		other := reference.Ref{Kind: proxy.Kind, Name: "other"}
		ask := func() map[reference.Ref]digest.State {
			states, err := chain.Live(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy, other})
			require.NoError(t, err)
			require.NotEmpty(t, states[other].Entries)
			return states
		}
		assert.Empty(t, ask()[proxy].Unverified, "no read is outstanding")

		w.fail(errors.New("no answer"))
		w.set(tls, "2")
		w.pass(time.Second)
		states := ask()
		assert.Equal(t, before, states[proxy].Entries, "the graph answers")
		assert.Equal(t, "too many objects to read", states[proxy].Unverified)
		assert.Empty(t, states[other].Unverified, "the Secret is not below it")

		w.fail(nil)
		w.pass(time.Minute)
		states = ask()
		assert.NotEqual(t, before, states[proxy].Entries)
		assert.Empty(t, states[proxy].Unverified)
	})
}

// readerFunc reads ConfigMaps and Secrets live.
type readerFunc func() error

func (f readerFunc) Live(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	return nil, f()
}

// A live read can take as long as the read that the graph waits for: then the state from before it must not count as verified.
func TestStateThatIsReadDuringAFailingQuestionIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.fail(errors.New("no answer"))
		w.set(tls, "2")
		w.pass(time.Second)
		slow := readerFunc(func() error {
			w.fail(nil)
			<-time.After(15 * time.Second)
			return errors.New("timeout")
		})
		states, err := chain.Live(t.Context(), slow, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.Empty(t, states[proxy].Unverified)
		assert.Equal(t, w.State("ns", proxy).Entries, states[proxy].Entries)
	})
}

// A connection can be dead without an error, and a caller may have no deadline.
func TestLiveReadOfACustomResourceIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.unanswered.Store(true)
		began := time.Now()
		states, err := chain.Live(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.Equal(t, w.State("ns", proxy).Entries, states[proxy].Entries, "the graph answers")
		assert.Equal(t, 30*time.Second, time.Since(began))
	})
}
