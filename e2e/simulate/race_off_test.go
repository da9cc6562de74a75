//go:build !race

package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// thin leaves nothing out.
const thin = 1

// TestHistoryIsRepeated shows that a seed is a history: with one processor two runs make the same decisions, and a replay follows their
// trace. The race detector changes the order of goroutines on purpose; so does the runtime when the machine stops the process for more
// than ten milliseconds, as a busy one does now and then. A decision that something else makes at
// random is among hundreds, and no attempt repeats them all.
func TestHistoryIsRepeated(t *testing.T) {
	t.Parallel()
	p, err := startProcess(t.Context())
	require.NoError(t, err)
	defer p.end()
	var differences []string
	for range 8 {
		difference := repeated(t, p)
		if difference == "" {
			return
		}
		differences = append(differences, difference)
	}
	t.Errorf("of %d attempts, none has repeated the history:\n%s", len(differences), strings.Join(differences, "\n"))
}

// repeated runs a history twice and replays it, and says what was not the same.
func repeated(t *testing.T, p *process) string {
	t.Helper()
	h := Draw(2, DrawOptions{Steps: 30})
	first, err := p.do(job{History: h, Traced: true})
	require.NoError(t, err)
	require.NotEmpty(t, first.Trace)
	second, err := p.do(job{History: h, Traced: true})
	require.NoError(t, err)
	for i, decision := range first.Trace {
		if i == len(second.Trace) || second.Trace[i] != decision {
			return fmt.Sprintf("the second run differs from decision %d of %d", i, len(first.Trace))
		}
	}
	if more := len(second.Trace) - len(first.Trace); more > 0 {
		return fmt.Sprintf("the second run makes %d more decisions", more)
	}
	h.Trace = first.Trace
	replayed, err := p.do(job{History: h})
	require.NoError(t, err)
	if replayed.Strayed > 0 {
		return fmt.Sprintf("%d decisions of the replay are not those of the trace", replayed.Strayed)
	}
	return ""
}
