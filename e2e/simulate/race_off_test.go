//go:build !race

package simulate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// thin leaves nothing out.
const thin = 1

// TestHistoryIsRepeated shows that a seed is a history: with one processor two runs make the same decisions. The race
// detector changes the order of goroutines on purpose.
func TestHistoryIsRepeated(t *testing.T) {
	t.Parallel()
	p, err := startProcess(t.Context())
	require.NoError(t, err)
	defer p.end()
	h := Draw(2, DrawOptions{Steps: 30})
	first, err := p.do(job{History: h, Traced: true})
	require.NoError(t, err)
	require.NotEmpty(t, first.Trace)
	second, err := p.do(job{History: h, Traced: true})
	require.NoError(t, err)
	assert.Equal(t, first.Trace, second.Trace)
	h.Trace = first.Trace
	replayed, err := p.do(job{History: h})
	require.NoError(t, err)
	assert.Zero(t, replayed.Strayed, "a replay follows the trace")
}
