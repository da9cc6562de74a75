package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestGates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	all := gates{settle: time.Second, settleMax: 5 * time.Second, refractory: 10 * time.Second}
	tests := map[string]struct {
		gates gates
		at    gateInput
		wait  time.Duration
		gate  string
	}{
		"nothing was seen: a change found at start does not wait": {gates: all, at: gateInput{now: now}},
		"a change just now waits for quiet": {
			gates: all, at: gateInput{now: now, unacted: now, lastEvent: now}, wait: time.Second, gate: "settle",
		},
		"each further change starts the quiet time anew": {
			gates: all, at: gateInput{now: now, unacted: ago(3 * time.Second), lastEvent: ago(200 * time.Millisecond)},
			wait: 800 * time.Millisecond, gate: "settle",
		},
		"but not for longer than the bound": {
			gates: all, at: gateInput{now: now, unacted: ago(4700 * time.Millisecond), lastEvent: now},
			wait: 300 * time.Millisecond, gate: "settle",
		},
		"past the bound the gate is open, however busy it is": {
			gates: all, at: gateInput{now: now, unacted: ago(6 * time.Second), lastEvent: now},
		},
		"a bound below the quiet time is none": {
			gates: gates{settle: time.Second, settleMax: time.Millisecond},
			at:    gateInput{now: now, unacted: now, lastEvent: now}, wait: time.Second, gate: "settle",
		},
		"quiet for long enough": {
			gates: all, at: gateInput{now: now, unacted: ago(time.Second), lastEvent: ago(time.Second)},
		},
		"a reload a moment ago: rest": {
			gates: all, at: gateInput{now: now, lastReload: ago(4 * time.Second)}, wait: 6 * time.Second, gate: "refractory",
		},
		"settle comes first": {
			gates: all, at: gateInput{now: now, unacted: now, lastEvent: now, lastReload: now}, wait: time.Second, gate: "settle",
		},
		"rested": {gates: all, at: gateInput{now: now, lastReload: ago(10 * time.Second)}},
		"0 switches both off": {
			gates: gates{}, at: gateInput{now: now, unacted: now, lastEvent: now, lastReload: now},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wait, gate := tc.gates.wait(tc.at)
			assert.Equal(t, tc.wait, wait)
			assert.Equal(t, tc.gate, gate)
		})
	}
}

func TestConfigurationIsRestlessUntilItHasSettled(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g := gates{settle: time.Second}
	assert.True(t, g.restless(gateInput{now: now, lastEvent: now.Add(-time.Second + 1)}))
	assert.False(t, g.restless(gateInput{now: now, lastEvent: now.Add(-time.Second)}))
	assert.False(t, g.restless(gateInput{now: now}), "no change was seen")
	assert.False(t, gates{}.restless(gateInput{now: now, lastEvent: now}), "without a settle time, only conflicts count")
}
