package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/bench/scenario"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// Where the machine stands still for longer than the settle time, what happens at once is two rollouts: scenarios with such counts run
// again, without the others. A scenario that fails is not repeated: no such pause explains that.
func TestEveryScenarioRunsAndKeepsItsCounts(t *testing.T) {
	t.Parallel()
	names, found := scenario.Names(), map[string]int{}
	assert.NoError(t, poll.Steadily(t, func() error {
		var over []string
		for _, f := range quick(t, names) {
			found[f.Scenario]++
			if f.Verdict == "over" && !slices.Contains(over, f.Scenario) {
				over = append(over, f.Scenario)
			}
		}
		names = over
		if len(over) > 0 {
			return fmt.Errorf("scenarios with a count over its budget: %q", over)
		}
		return nil
	}))
	for _, name := range scenario.Names() {
		assert.NotZero(t, found[name], "the report has figures of %s", name)
	}
}

// judged is a figure of the report.
type judged struct{ Scenario, Verdict string }

// quick runs scenarios, none of which may fail, and returns their figures. What they print is in the log of the test.
func quick(t *testing.T, names []string) (figures []judged) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bench.json")
	var table, progress strings.Builder
	code := run(t.Context(), []string{"-quick", "-json", file, "-scenario", strings.Join(names, ",")}, &table, &progress)
	t.Log(table.String())
	if code != 0 {
		t.Log(progress.String())
		require.Contains(t, progress.String(), "figures are over their budgets", "a scenario has failed")
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &figures))
	for _, name := range names {
		assert.Contains(t, table.String(), name)
	}
	isOver := func(f judged) bool { return f.Verdict == "over" }
	require.Equal(t, code != 0, slices.ContainsFunc(figures, isOver), "the exit code goes by the figures")
	return figures
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		args []string
		says []string
	}{
		"all unknown scenarios are named, and those that there are": {
			[]string{"-scenario", "latency,speed,size"}, []string{`"speed"`, `"size"`, "fan-out"},
		},
		"an unknown flag": {[]string{"-fast"}, []string{"-fast"}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			var output, errors strings.Builder
			assert.Equal(t, 2, run(t.Context(), test.args, &output, &errors))
			for _, text := range test.says {
				assert.Contains(t, errors.String(), text)
			}
			assert.Empty(t, output.String())
		})
	}
}
