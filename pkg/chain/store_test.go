package chain_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// A conversion webhook that hangs must not take the time in which ConfigMaps and Secrets are read.
func TestCustomResourcesThatAreNotAnsweredLeaveTimeForTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.unanswered.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		states, err := chain.Live(ctx, awaiting{w}, w.Chain, "ns", []reference.Ref{proxy, tls})
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(began))
		assert.NotEmpty(t, states[tls].Entries)
		assert.Equal(t, w.State("ns", proxy).Entries, states[proxy].Entries, "the graph answers")
		assert.Empty(t, states[proxy].Unverified, "no read is outstanding")
	})
}

// awaiting fails as a client does when the time is over.
type awaiting struct{ *world }

func (a awaiting) Live(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return a.world.Live(ctx, namespace, refs)
}
