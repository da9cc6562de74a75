package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// A read that never ends would keep its namespace held for ever.
func TestReadThatHangsIsGivenUpAfterThirtySecondsAndRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hang := func(yes bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.hanging = yes
		}
		hang(true)
		w.graph()
		require.Equal(t, "secret/tls is unsynced: its content has not been read yet", w.hold())
		hang(false) // the read that is under way hangs on
		w.pass(28 * time.Second)
		assert.NotEmpty(t, w.hold(), "a slow answer is waited for")
		w.pass(13 * time.Second)
		assert.Empty(t, w.hold(), "no other read follows")
	})
}

// The API server waits for the answer of the webhook: a question must not wait for a graph that makes no progress.
func TestQuestionWaitsHalfASecondForTheGraph(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stuck := chain.New(chain.Options{Client: w.client, Config: w, Ring: w.currentRing, Log: logr.Discard()}) // it is not started
		began := time.Now()
		states, err := chain.Live(t.Context(), w, stuck, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.NotNil(t, states[proxy].Hold)
		assert.LessOrEqual(t, time.Since(began), time.Second/2)
	})
}
