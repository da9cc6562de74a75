package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/bench/scenario"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

func TestEveryScenarioRunsAndKeepsItsCounts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bench.json")
	var table, progress strings.Builder
	var code int
	poll.Steadily(t, func() bool {
		table.Reset()
		progress.Reset()
		code = run(t.Context(), []string{"-quick", "-json", file}, &table, &progress)
		t.Log(table.String())
		return code == 0
	})
	require.Zero(t, code, progress.String())
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var figures []struct {
		Scenario, Figure, Verdict string
		Value, Floor              float64
	}
	require.NoError(t, json.Unmarshal(content, &figures))
	found := map[string]int{}
	for _, f := range figures {
		found[f.Scenario]++
		assert.NotEqual(t, "over", f.Verdict, f.Figure)
	}
	for _, name := range scenario.Names() {
		assert.NotZero(t, found[name], "the table has figures of %s", name)
		assert.Contains(t, table.String(), name)
	}
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
