package simulate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// The goroutines of a process that was killed end later than its successor starts.
func TestKilledReplicaStartsAgainInTime(t *testing.T) {
	t.Parallel()
	kill := history.Step{Wait: history.Duration(5 * time.Second), Do: "kill", On: "replica-0", With: map[string]string{"for": "300ms"}}
	p, err := startProcess(t.Context())
	require.NoError(t, err)
	defer p.end()
	o, err := p.do(job{Verbose: true, History: history.History{
		Form: history.Form, Seed: 1, Setup: history.Setup{Replicas: 1}, Steps: []history.Step{kill, kill},
	}})
	require.NoError(t, err)
	assert.Empty(t, o.Violations)
	killed, started := moment(t, o.Journal, "replica-0.1 is killed"), moment(t, o.Journal, "replica-0.2 starts")
	assert.InDelta(t, 300*time.Millisecond, started-killed, float64(10*time.Millisecond))
	assert.InDelta(t, 5*time.Second, moment(t, o.Journal, "replica-0.2 is killed")-killed, float64(10*time.Millisecond))
	rest := o.Journal[slices.IndexFunc(o.Journal, func(line string) bool { return strings.Contains(line, "replica-0.2 starts") }):]
	for _, line := range rest {
		assert.NotContains(t, line, "replica-0.1 ", "it has an effect after its end")
	}
}

// moment returns when a line was written into a journal.
func moment(t *testing.T, lines []string, text string) time.Duration {
	t.Helper()
	i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, text) })
	require.GreaterOrEqual(t, i, 0, text)
	at, err := time.ParseDuration(strings.Fields(lines[i])[0])
	require.NoError(t, err)
	return at
}
