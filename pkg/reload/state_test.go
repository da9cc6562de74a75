package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestChangesDuringAnAttemptAreKept(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	t1, t2, t3 := t0.Add(time.Second), t0.Add(2*time.Second), t0.Add(3*time.Second)
	m := &changes{}
	m.Changed(key, t0)
	m.Changed(key, t1)
	assert.Equal(t, arrivals{first: t0, unacted: t0, last: t1}, m.Attempt(key))

	m.Changed(key, t2)
	m.Changed(key, t3)
	m.Settled(key)
	assert.Equal(t, arrivals{first: t2, unacted: t2, last: t3}, m.Attempt(key), "the time counts from the first event after the attempt began")
	m.Settled(key)
	assert.Zero(t, m.Attempt(key))
}

// One ConfigMap is written every 400 ms, and there are more workloads than can be reloaded at once.
func TestConstantChangeDoesNotMoveTheSettleWindow(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m, g := &changes{}, gates{settle: time.Second, settleMax: 5 * time.Second}
	for after := time.Duration(0); after < time.Minute; after += 400 * time.Millisecond {
		now := t0.Add(after)
		m.Changed(key, now)
		events := m.Attempt(key)
		wait, _ := g.wait(gateInput{now: now, unacted: events.unacted, lastEvent: events.last})
		if after < 5*time.Second {
			assert.Positive(t, wait, after)
		} else {
			assert.Zero(t, wait, "settle-max is over, whatever has come since: %s", after)
		}
	}
}

func TestFailedAttemptStartsTheSettleWindowAnew(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := t0.Add(time.Minute)
	m := &changes{}
	m.Changed(key, t0)
	m.Attempt(key)
	m.Acted(key)
	events := m.Attempt(key)
	assert.Equal(t, arrivals{first: t0, last: t0}, events)
	wait, _ := gates{settle: time.Hour}.wait(gateInput{now: t0, unacted: events.unacted, lastEvent: events.last})
	assert.Zero(t, wait, "what was acted on has settled")
	m.Changed(key, later)
	assert.Equal(t, arrivals{first: t0, unacted: later, last: later}, m.Attempt(key), "a change after a failure is given the time to settle")
	m.Changed(key, later.Add(time.Second))
	m.Acted(key)
	assert.Equal(t, later.Add(time.Second), m.Attempt(key).unacted, "it came after the attempt began")
}

func TestEventsWhileAWorkloadSettlesNeedNoLook(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &changes{}
	assert.False(t, m.Changed(key, t0), "the first one")
	m.Attempt(key)
	m.Settles(key, t0.Add(time.Second))
	assert.True(t, m.Changed(key, t0.Add(time.Second-1)))
	assert.False(t, m.Changed(key, t0.Add(time.Second)), "the time is over")
	assert.False(t, m.Changed(workload.Key{Name: "pay"}, t0))
	m.Attempt(key)
	assert.False(t, m.Changed(key, t0), "it was looked at, and may not wait any more")
}

func TestChangesMayComeLate(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &changes{}
	m.Changed(key, t0)
	m.Changed(key, t0.Add(-time.Second))
	assert.Equal(t, arrivals{first: t0.Add(-time.Second), unacted: t0.Add(-time.Second), last: t0}, m.Attempt(key), "the last one still has to settle")
}

func TestOnlyTheLastChangeBeforeTheLeadCounts(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	t1 := t0.Add(time.Second)
	m := &changes{}
	m.Changed(key, t0)
	m.Changed(key, t1)
	m.Lead()
	assert.Equal(t, arrivals{t1, t1, t1}, m.Attempt(key), "another leader has dealt with the first one: it must not cut short the time to settle")
}

func TestOwnStampIsKnown(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	m := &ownWrites{}
	assert.False(t, m.IsStamped(key, 0), "nothing was stamped")
	m.Stamped(key, 2, time.Time{})
	assert.True(t, m.IsStamped(key, 2))
	assert.False(t, m.IsStamped(key, 3), "another writer has written since")
}

func TestForeignKeyIsTakenOverOnce(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	m := &takeovers{}
	assert.True(t, m.May(key, "aaaaaaaa"))
	assert.True(t, m.May(key, "aaaaaaaa"), "the write may have failed: what is due stays due")
	m.Done(key, "aaaaaaaa")
	assert.False(t, m.May(key, "aaaaaaaa"), "another installation wrote it back: two must not fight")
	assert.True(t, m.May(key, "bbbbbbbb"))
	assert.True(t, m.May(workload.Key{Name: "pay"}, "aaaaaaaa"), "each workload for itself")
}

func TestNothingIsKeptOfWorkloadsInOrder(t *testing.T) {
	t.Parallel()
	l := newLoop(cluster{}, Options{})
	s := subject{key: workload.Key{Name: "cart"}}
	l.state.changes.Attempt(s.key)
	l.state.changes.Acted(s.key)
	l.state.takeovers.Done(s.key, "")
	l.closing.inOrder(s)
	assert.Equal(t, &state{}, l.state, "a cluster has many workloads that ask for nothing")
}

func TestOldestDueReload(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &dueReloads{}
	_, count := m.Oldest()
	assert.Zero(t, count)
	m.Due(workload.Key{Name: "b"}, t0.Add(time.Minute))
	m.Due(workload.Key{Name: "a"}, t0)
	m.Due(workload.Key{Name: "a"}, t0.Add(time.Hour))
	oldest, count := m.Oldest()
	assert.Equal(t, t0, oldest, "being tried again does not make a reload younger")
	assert.Equal(t, 2, count)
	m.Forget(workload.Key{Name: "a"})
	oldest, _ = m.Oldest()
	assert.Equal(t, t0.Add(time.Minute), oldest)
}

func TestAttemptIsDeferredUntilTheRetryOrAConfigEvent(t *testing.T) {
	t.Parallel()
	key, start := workload.Key{Name: "cart"}, time.Now()
	d := &deferrals{}
	d.Defer(key, deferral{since: start.Add(time.Second), until: start.Add(3 * time.Second)})
	assert.Equal(t, 2*time.Second, d.Wait(key, start, start.Add(time.Second)), "the own write is no reason to try earlier")
	assert.Zero(t, d.Wait(key, start, start.Add(3*time.Second)), "the pause is over")
	assert.Zero(t, d.Wait(key, start.Add(2*time.Second), start.Add(2*time.Second)), "the configuration has changed since")
	d.Defer(key, deferral{since: start.Add(4 * time.Second), until: start.Add(9 * time.Second), firm: true})
	at := start.Add(5 * time.Second)
	assert.Equal(t, 4*time.Second, d.Wait(key, at, at), "under constant change there would be no wait at all")
	d.Forget(key)
	assert.Zero(t, d.Wait(key, at, at), "nothing is due any more")
}

func TestStateForgetsAWorkloadInAllParts(t *testing.T) {
	t.Parallel()
	s, key, now := &state{}, workload.Key{Name: "cart"}, time.Now()
	s.changes.Changed(key, now)
	s.due.Due(key, now)
	s.deferrals.Defer(key, deferral{since: now, until: now.Add(time.Second)})
	s.writes.Stamped(key, 2, now)
	s.takeovers.Done(key, "aaaaaaaa")
	s.warnings.Warn(key, "ReloadFailed", "a", now)
	s.reports.See(key, "a", now)
	s.contests.Wrote(key, "", now)
	s.Forget(key)
	for name, kept := range map[string]int{
		"changes": len(s.changes.entries), "due": len(s.due.entries), "deferrals": len(s.deferrals.entries), "writes": len(s.writes.entries),
		"takeovers": len(s.takeovers.entries), "warnings": len(s.warnings.entries), "reports": len(s.reports.entries), "contests": len(s.contests.entries),
	} {
		assert.Zero(t, kept, name)
	}
}

func TestCacheIsBehindUntilItShowsOurWrite(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &ownWrites{}
	assert.False(t, m.Behind(key, 1, t0))
	m.Wrote(key, 4, t0)
	assert.True(t, m.Behind(key, 3, t0.Add(time.Second)))
	assert.False(t, m.Behind(key, 4, t0.Add(time.Second)))
	assert.False(t, m.Behind(key, 1, t0.Add(behindAtMost)), "it was created anew, or restored: it must not be left alone for ever")
}
