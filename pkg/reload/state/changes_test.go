package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// look is when to look at a workload for an event.
type look struct {
	after  time.Duration
	needed bool
}

// lookFor records an event of one workload.
func lookFor(t *testing.T, m *changes, key workload.Key, at time.Time) look {
	t.Helper()
	now, later := m.EventArrivedFor([]workload.Key{key}, at)
	switch {
	case len(now) > 0:
		require.Equal(t, []workload.Key{key}, now)
		require.Empty(t, later)
		return look{needed: true}
	case len(later) > 0:
		require.Len(t, later, 1)
		require.Equal(t, key, later[0].Key)
		return look{later[0].After, true}
	default:
		return look{}
	}
}

func TestEventsWhileAWorkloadSettlesNeedNoLook(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &changes{}
	needs := func(key workload.Key, at time.Time) bool {
		look := lookFor(t, m, key, at)
		assert.Zero(t, look.after)
		return look.needed
	}
	assert.True(t, needs(key, t0), "the first one")
	m.BeginAttempt(key)
	m.WaitToSettle(key, t0.Add(time.Second))
	assert.False(t, needs(key, t0.Add(time.Second-1)), "the settle time is not over")
	assert.True(t, needs(key, t0.Add(time.Second)), "the time is over")
	assert.True(t, needs(workload.Key{Name: "pay"}, t0), "the other workload does not wait")
	m.BeginAttempt(key)
	assert.True(t, needs(key, t0), "it was looked at, and may not wait any more")
}

func TestEventsWhileAWorkloadWaitsNeedOneLook(t *testing.T) {
	t.Parallel()
	key, t0, m := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), &changes{}
	at := func(at time.Time) look { return lookFor(t, m, key, at) }
	at(t0)
	m.BeginAttempt(key)
	m.WaitForOther(key, 5*time.Second)
	assert.Equal(t, look{5 * time.Second, true}, at(t0.Add(time.Second)), "it is queued for later, or sooner where the wait ends")
	assert.Equal(t, look{0, false}, at(t0.Add(6*time.Second-1)), "it is queued already")
	assert.Equal(t, look{0, true}, at(t0.Add(6*time.Second)), "it is to be looked at now")
	assert.Equal(t, t0, m.BeginAttempt(key).FirstUnhandled, "the first change that nothing has acted on stays the first")
	assert.Equal(t, look{0, true}, at(t0.Add(7*time.Second)), "it was looked at, and may not wait any more")
	m.WaitForOther(key, 0)
	assert.Equal(t, look{0, true}, at(t0.Add(8*time.Second)), "without a settle time, no event waits")
	assert.Equal(t, look{0, true}, at(t0.Add(7*time.Second-1)), "nor does one that comes late")
}

func TestEventArrivesForAllWorkloadsThatItConcerns(t *testing.T) {
	t.Parallel()
	t0, m := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), &changes{}
	idle, settles, waits, fresh := workload.Key{Name: "idle"}, workload.Key{Name: "settles"}, workload.Key{Name: "waits"}, workload.Key{Name: "fresh"}
	for _, key := range []workload.Key{idle, settles, waits} {
		m.EventArrived(key, t0)
		m.BeginAttempt(key)
	}
	m.WaitToSettle(settles, t0.Add(time.Minute))
	m.WaitForOther(waits, 5*time.Second)
	all := []workload.Key{idle, settles, waits, fresh}
	now, later := m.EventArrivedFor([]workload.Key{idle, settles, waits, fresh}, t0.Add(time.Second))
	assert.Equal(t, []workload.Key{idle, fresh}, now)
	assert.Equal(t, []Look{{waits, 5 * time.Second}}, later)
	for _, key := range all {
		assert.Equal(t, t0.Add(time.Second), m.LastEvent(key), key.Name)
		assert.True(t, m.HasPending(key), key.Name)
	}
}

// Each workload of a cluster has an event at some time.
func TestNothingIsKeptOfAWorkloadInOrder(t *testing.T) {
	t.Parallel()
	key, t0 := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		before  func(m *changes)
		attempt func(m *changes)
		kept    bool
		next    look
	}{
		"in order":                        {next: look{needed: true}},
		"an event came meanwhile":         {attempt: func(m *changes) { m.EventArrived(key, t0.Add(time.Second)) }, kept: true, next: look{needed: true}},
		"it waits for something else":     {attempt: func(m *changes) { m.WaitForOther(key, time.Minute) }, kept: true, next: look{time.Minute, true}},
		"it waits to settle":              {attempt: func(m *changes) { m.WaitToSettle(key, t0.Add(time.Hour)) }, kept: true},
		"another led when the event came": {before: func(m *changes) { m.BecomeLeader() }, next: look{needed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &changes{}
			m.ForgetHandled(key)
			m.EventArrived(key, t0)
			for _, do := range []func(*changes){tc.before, func(m *changes) { m.BeginAttempt(key) }, tc.attempt} {
				if do != nil {
					do(m)
				}
			}
			m.ForgetHandled(key)
			assert.Equal(t, tc.kept, len(m.entries) == 1)
			assert.Equal(t, tc.next, lookFor(t, m, key, t0.Add(2*time.Second)))
			assert.True(t, m.HasPending(key), "a later event counts")
		})
	}
}
