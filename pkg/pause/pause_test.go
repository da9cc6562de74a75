package pause_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/pause"
)

func TestPauseIsDroppedByAWriteThatKeepsTheDeploymentPaused(t *testing.T) {
	t.Parallel()
	const since = "2026-03-04T05:06:07Z"
	ours, users, none := pause.State{Paused: true, Since: since, Ours: true}, pause.State{Paused: true}, pause.State{}
	for name, tc := range map[string]struct {
		stored, written pause.State
		want            bool
	}{
		"the annotation is dropped":           {ours, users, true},
		"nothing changes":                     {ours, ours, false},
		"the begin is another one":            {ours, pause.State{Paused: true, Since: "x", Ours: true}, false},
		"the begin is empty":                  {pause.State{Paused: true, Ours: true}, users, true},
		"the pause is ended":                  {ours, none, false},
		"the pause is ended, but not cleaned": {ours, pause.State{Since: since, Ours: true}, false},
		"a user's pause":                      {users, users, false},
		"a user begins one":                   {none, users, false},
		"an earlier pause is cleaned":         {pause.State{Since: since, Ours: true}, users, false},
	} {
		assert.Equal(t, tc.want, tc.stored.IsDroppedBy(tc.written), name)
	}
}

func TestPauseWhosePeriodIsNotReadIsOursAfterAReload(t *testing.T) {
	t.Parallel()
	ours := pause.State{Paused: true, Since: "2026-03-04T05:06:07Z", Ours: true}
	for name, tc := range map[string]struct {
		known           pause.State
		period          time.Duration
		there, reloaded bool
		want            bool
	}{
		"it has a period":         {ours, time.Minute, true, true, true},
		"the period is removed":   {ours, 0, false, true, true},
		"the period is not valid": {ours, 0, true, true, false},
		"never reloaded":          {ours, time.Minute, true, false, false},
		"a user's pause":          {pause.State{Paused: true}, time.Minute, true, true, false},
	} {
		got := tc.known.Unread(tc.period, tc.there, tc.reloaded)
		assert.Equal(t, pause.State{Period: tc.period, Paused: true, Since: tc.known.Since, Ours: tc.want}, got, name)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	for name, tc := range map[string]struct {
		state  pause.State
		action pause.Action
		wait   time.Duration
		begins bool
	}{
		"no pause is asked for":           {state: pause.State{}, action: pause.None},
		"no reload was made yet":          {state: pause.State{Period: time.Minute}, action: pause.None, begins: true},
		"a user has paused it":            {state: pause.State{Period: time.Minute, Paused: true}, action: pause.None},
		"the period has begun":            {state: pause.State{Period: time.Minute, Paused: true, Since: at(-10 * time.Second), Ours: true}, action: pause.None, wait: 50 * time.Second},
		"the period has ended":            {state: pause.State{Period: time.Minute, Paused: true, Since: at(-time.Minute), Ours: true}, action: pause.Resume},
		"the period ended long ago":       {state: pause.State{Period: time.Minute, Paused: true, Since: at(-24 * time.Hour), Ours: true}, action: pause.Resume},
		"a user has resumed it":           {state: pause.State{Period: time.Minute, Since: at(-time.Second), Ours: true}, action: pause.Clean, begins: true},
		"a user has removed the period":   {state: pause.State{Paused: true, Since: at(-time.Second), Ours: true}, action: pause.Resume},
		"the begin is no time":            {state: pause.State{Period: time.Minute, Paused: true, Since: "yesterday", Ours: true}, action: pause.Resume},
		"the begin is empty":              {state: pause.State{Period: time.Minute, Paused: true, Ours: true}, action: pause.Resume},
		"another clock is ahead":          {state: pause.State{Period: time.Minute, Paused: true, Since: at(5 * time.Second), Ours: true}, action: pause.None, wait: 65 * time.Second},
		"a removed period, a clock ahead": {state: pause.State{Paused: true, Since: at(time.Second), Ours: true}, action: pause.Resume},
		"another clock is a period ahead": {state: pause.State{Period: time.Minute, Paused: true, Since: at(time.Minute), Ours: true}, action: pause.None, wait: 2 * time.Minute},
		"another clock is ahead by hours": {state: pause.State{Period: time.Minute, Paused: true, Since: at(5 * time.Hour), Ours: true}, action: pause.Resume},
		"the time has a zone":             {state: pause.State{Period: time.Minute, Paused: true, Since: now.In(time.FixedZone("", 7200)).Format(time.RFC3339), Ours: true}, action: pause.None, wait: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			action, wait := tc.state.Decide(now)
			assert.Equal(t, tc.action, action)
			assert.Equal(t, tc.wait, wait)
			assert.Equal(t, tc.begins, tc.state.Begins(), "the next reload pauses it")
		})
	}
}
