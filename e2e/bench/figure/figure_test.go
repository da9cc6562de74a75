package figure_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		figure     figure.Figure
		countsOnly bool
		want       figure.Verdict
	}{
		"without a budget there is no verdict": {figure: figure.Figure{Value: 5}, want: figure.Unjudged},
		"the limit itself is within": {
			figure: figure.Figure{Value: 45, Unit: figure.Megabytes, Budget: figure.AtMost(45)}, want: figure.OK,
		},
		"more than the limit is over": {
			figure: figure.Figure{Value: 45.1, Unit: figure.Megabytes, Budget: figure.AtMost(45)}, want: figure.Over,
		},
		"a rate at the limit is within": {
			figure: figure.Figure{Value: 10_000, Unit: figure.PerSecond, Budget: figure.AtLeast(10_000)}, want: figure.OK,
		},
		"a rate below the limit is missed": {
			figure: figure.Figure{Value: 9_999, Unit: figure.PerSecond, Budget: figure.AtLeast(10_000)}, want: figure.Over,
		},
		"one right value": {figure: figure.Figure{Value: 1, Budget: figure.Exactly(1)}, want: figure.OK},
		"less than the right value is missed": {
			figure: figure.Figure{Value: 0, Budget: figure.Exactly(1)}, want: figure.Over,
		},
		"a multiple of the floor within": {
			figure: figure.Figure{Value: 9, Floor: 7.5, Unit: figure.Milliseconds, Budget: figure.Times(1.2)}, want: figure.OK,
		},
		"a multiple of the floor beyond": {
			figure: figure.Figure{Value: 9.1, Floor: 7.5, Unit: figure.Milliseconds, Budget: figure.Times(1.2)}, want: figure.Over,
		},
		"a floor that was not measured proves nothing": {
			figure: figure.Figure{Value: 1, Unit: figure.Milliseconds, Budget: figure.Times(1.2)}, want: figure.Over,
		},
		"a short run judges no durations": {
			figure: figure.Figure{Value: 100, Unit: figure.Seconds, Budget: figure.AtMost(15)}, countsOnly: true, want: figure.Unjudged,
		},
		"a short run judges counts": {
			figure: figure.Figure{Value: 2, Budget: figure.Exactly(1)}, countsOnly: true, want: figure.Over,
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, test.figure.Judge(test.countsOnly))
		})
	}
}

func report() figure.Report {
	return figure.Report{Figures: []figure.Figure{
		{
			Scenario: "latency", Name: "p50", Unit: figure.Milliseconds, Value: 8.25, Floor: 7.5,
			Budget: figure.Times(1.2), Note: "200 samples of each",
		},
		{Scenario: "memory", Name: "20 kB each", Unit: figure.Megabytes, Value: 51.4, Budget: figure.AtMost(45)},
		{Scenario: "burst", Name: "ten at once", Value: 1, Budget: figure.Exactly(1)},
		{Scenario: "requests", Name: "Events", Value: 150},
	}}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	require.NoError(t, report().WriteTable(&text))
	assert.Equal(t, strings.Join([]string{
		"SCENARIO  FIGURE       VALUE    FLOOR    RATIO  BUDGET          VERDICT",
		"latency   p50          8.25 ms  7.50 ms  1.10   <= 1.2 x floor  ok",
		"memory    20 kB each   51.4 MB  -        -      <= 45 MB        over",
		"burst     ten at once  1        -        -      = 1             ok",
		"requests  Events       150      -        -      -               -",
		"latency, p50: 200 samples of each",
		"",
	}, "\n"), text.String())
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	require.NoError(t, report().WriteJSON(&text))
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(text.String()), &rows))
	require.Len(t, rows, 4)
	assert.Equal(t, map[string]any{
		"scenario": "latency", "figure": "p50", "unit": "ms", "value": 8.25, "floor": 7.5, "ratio": 1.1,
		"budget": "<= 1.2 x floor", "verdict": "ok", "note": "200 samples of each",
	}, rows[0])
	assert.Equal(t, map[string]any{"scenario": "requests", "figure": "Events", "value": 150.0, "verdict": "-"}, rows[3])
}

func TestOver(t *testing.T) {
	t.Parallel()
	r := report()
	over := r.Over()
	require.Len(t, over, 1, "the memory is over, the rest is within or has no budget")
	assert.Equal(t, "memory", over[0].Scenario)
	r.CountsOnly = true
	assert.Empty(t, r.Over(), "memory is not judged then")
}
