package configstate

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// A panic during one read is its error: the others are answered, and the process goes on.
func TestPanicDuringOneReadLeavesTheOthers(t *testing.T) {
	t.Parallel()
	bad, good := reference.Ref{Kind: reference.Secret, Name: "bad"}, reference.Ref{Kind: reference.Secret, Name: "good"}
	read := func(_ context.Context, k objectKey) (digest.State, error) {
		if k.ref == bad {
			panic("oops")
		}
		return digest.State{Absent: true}, nil
	}
	for _, refs := range [][]reference.Ref{{bad, good}, {bad}} {
		states, err := each(t.Context(), "shop", refs, read)
		var failed *ReadError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, bad, failed.Ref)
		require.ErrorContains(t, err, "oops")
		assert.Len(t, states, len(refs)-1)
	}
}
