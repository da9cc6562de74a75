package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// A batch of reads takes as long as the slowest of them. What it has read at its beginning must not be the last word on an object that
// nothing refers to for a while.
func TestChangeOfAnObjectThatIsBeingReadIsReadThoughNothingRefersToIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		linger := func(d time.Duration) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lingering = d
		}
		linger(20 * time.Second)
		w.set(tls, "2")
		w.pass(time.Second)
		linger(0)
		reads := w.readCount()
		w.put(services, "s", map[string]any{})
		w.pass(time.Second)
		w.set(tls, "3")
		w.pass(time.Second)
		w.put(services, "s", map[string]any{"secret": "tls"})
		w.pass(time.Second)
		require.Equal(t, reads, w.readCount(), "the batch has not ended")
		w.pass(time.Minute)
		live, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		require.Empty(t, w.hold())
		assert.Equal(t, live[proxy].Entries, w.State("ns", proxy).Entries)
	})
}
