package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestGates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	all := Gates{Settle: time.Second, SettleMax: 5 * time.Second, Refractory: 10 * time.Second}
	tests := map[string]struct {
		gates Gates
		at    GateInput
		wait  time.Duration
		gate  string
	}{
		"nothing was seen: a change found at start does not wait": {gates: all, at: GateInput{Now: now}},
		"a change just now waits for quiet": {
			gates: all, at: GateInput{Now: now, FirstUnhandled: now, LastEvent: now}, wait: time.Second, gate: "settle",
		},
		"each further change starts the quiet time again": {
			gates: all, at: GateInput{Now: now, FirstUnhandled: ago(3 * time.Second), LastEvent: ago(200 * time.Millisecond)},
			wait: 800 * time.Millisecond, gate: "settle",
		},
		"but not for longer than the bound": {
			gates: all, at: GateInput{Now: now, FirstUnhandled: ago(4700 * time.Millisecond), LastEvent: now},
			wait: 300 * time.Millisecond, gate: "settle",
		},
		"past the bound the gate is open, however busy it is": {
			gates: all, at: GateInput{Now: now, FirstUnhandled: ago(6 * time.Second), LastEvent: now},
		},
		"a bound below the quiet time is none": {
			gates: Gates{Settle: time.Second, SettleMax: time.Millisecond},
			at:    GateInput{Now: now, FirstUnhandled: now, LastEvent: now}, wait: time.Second, gate: "settle",
		},
		"quiet for long enough": {
			gates: all, at: GateInput{Now: now, FirstUnhandled: ago(time.Second), LastEvent: ago(time.Second)},
		},
		"a reload a moment ago: rest": {
			gates: all, at: GateInput{Now: now, LastReload: ago(4 * time.Second)}, wait: 6 * time.Second, gate: "refractory",
		},
		"settle comes first": {
			gates: all, at: GateInput{Now: now, FirstUnhandled: now, LastEvent: now, LastReload: now}, wait: time.Second, gate: "settle",
		},
		"rested": {gates: all, at: GateInput{Now: now, LastReload: ago(10 * time.Second)}},
		"0 switches both off": {
			gates: Gates{}, at: GateInput{Now: now, FirstUnhandled: now, LastEvent: now, LastReload: now},
		},
		"without a settle time, a change that arrives meanwhile does not wait either": {
			gates: Gates{SettleMax: 5 * time.Second}, at: GateInput{Now: now, FirstUnhandled: now, LastEvent: now.Add(time.Millisecond)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wait, gate := tc.gates.Wait(tc.at)
			assert.Equal(t, tc.wait, wait)
			assert.Equal(t, tc.gate, gate)
		})
	}
}

func TestConfigurationIsRestlessUntilItHasSettled(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g := Gates{Settle: time.Second}
	assert.True(t, g.Unsettled(GateInput{Now: now, LastEvent: now.Add(-time.Second + 1)}), "a nanosecond of the settle time is left")
	assert.False(t, g.Unsettled(GateInput{Now: now, LastEvent: now.Add(-time.Second)}), "the settle time is over")
	assert.False(t, g.Unsettled(GateInput{Now: now}), "no change was seen")
	assert.False(t, Gates{}.Unsettled(GateInput{Now: now, LastEvent: now}), "without a settle time, only conflicts count")
}

func TestRefractoryTimeEndsOnlyWhereThereIsOne(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	assert.Equal(t, now.Add(time.Second), Gates{Refractory: time.Second}.RefractoryEnd(GateInput{LastReload: now}))
	assert.Zero(t, Gates{Refractory: time.Second}.RefractoryEnd(GateInput{}), "no reload is known")
	assert.Zero(t, Gates{}.RefractoryEnd(GateInput{LastReload: now}), "it is switched off")
}
