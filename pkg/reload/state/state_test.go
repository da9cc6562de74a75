package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestChangesDuringAnAttemptAreKept(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	t1, t2, t3 := t0.Add(time.Second), t0.Add(2*time.Second), t0.Add(3*time.Second)
	m := &changes{}
	m.EventArrived(key, t0)
	m.EventArrived(key, t1)
	assert.Equal(t, Arrivals{First: t0, FirstUnhandled: t0, Last: t1}, m.BeginAttempt(key))

	m.EventArrived(key, t2)
	m.EventArrived(key, t3)
	m.ForgetHandled(key)
	assert.Equal(t, Arrivals{First: t2, FirstUnhandled: t2, Last: t3}, m.BeginAttempt(key), "the time counts from the first event after the attempt began")
	m.ForgetHandled(key)
	assert.Zero(t, m.BeginAttempt(key))
}

// One ConfigMap is written every 400 ms, and there are more workloads than can be reloaded at once.
func TestConstantChangeDoesNotMoveTheSettleWindow(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m, g := &changes{}, Gates{Settle: time.Second, SettleMax: 5 * time.Second}
	for after := time.Duration(0); after < time.Minute; after += 400 * time.Millisecond {
		now := t0.Add(after)
		m.EventArrived(key, now)
		events := m.BeginAttempt(key)
		wait, _ := g.Wait(GateInput{Now: now, FirstUnhandled: events.FirstUnhandled, LastEvent: events.Last})
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
	m.EventArrived(key, t0)
	m.BeginAttempt(key)
	m.MarkActedOn(key)
	events := m.BeginAttempt(key)
	assert.Equal(t, Arrivals{First: t0, Last: t0}, events)
	wait, _ := Gates{Settle: time.Hour}.Wait(GateInput{Now: t0, FirstUnhandled: events.FirstUnhandled, LastEvent: events.Last})
	assert.Zero(t, wait, "what was acted on has settled")
	m.EventArrived(key, later)
	assert.Equal(t, Arrivals{First: t0, FirstUnhandled: later, Last: later}, m.BeginAttempt(key), "a change after a failure is given the time to settle")
	m.EventArrived(key, later.Add(time.Second))
	m.MarkActedOn(key)
	assert.Equal(t, later.Add(time.Second), m.BeginAttempt(key).FirstUnhandled, "it came after the attempt began")
}

func TestStampStartsTheSettleWindowAnew(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &changes{}
	assert.Equal(t, Arrivals{}, m.StampedByOther(key))
	m.EventArrived(key, t0)
	m.EventArrived(key, t0.Add(time.Second))
	m.BeginAttempt(key)
	want := Arrivals{First: t0, FirstUnhandled: t0.Add(time.Second), Last: t0.Add(time.Second)}
	assert.Equal(t, want, m.StampedByOther(key), "the last change may have come after the webhook had read")
	m.EventArrived(key, t0.Add(4*time.Second))
	assert.Equal(t, want.FirstUnhandled, m.BeginAttempt(key).FirstUnhandled, "it does not move with later changes")
	m.MarkActedOn(key)
	assert.Zero(t, m.StampedByOther(key).FirstUnhandled, "nothing is left that a stamp could be too early for")
}

func TestChangesMayComeLate(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &changes{}
	m.EventArrived(key, t0)
	m.EventArrived(key, t0.Add(-time.Second))
	assert.Equal(t, Arrivals{First: t0.Add(-time.Second), FirstUnhandled: t0.Add(-time.Second), Last: t0}, m.BeginAttempt(key), "the last one still has to settle")
}

func TestOnlyTheLastChangeBeforeTheLeadCounts(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	t1 := t0.Add(time.Second)
	m := &changes{}
	m.EventArrived(key, t0)
	m.EventArrived(key, t1)
	m.BecomeLeader()
	assert.Equal(t, Arrivals{t1, t1, t1}, m.BeginAttempt(key), "another leader has dealt with the first one: it must not cut short the time to settle")
	assert.False(t, m.HasPending(key), "the attempt handles the inherited change")
}

// What a leader inherits may be days old.
func TestChangeUnderANewLeaderIsGivenTheTimeToSettle(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	late, t1, t2 := t0.Add(-time.Second), t0.Add(48*time.Hour), t0.Add(49*time.Hour)
	m := &changes{}
	m.EventArrived(key, t0)
	m.BecomeLeader()
	m.EventArrived(key, late)
	assert.False(t, m.HasPending(key), "an event of before that comes late is inherited as well")
	m.EventArrived(key, t1)
	m.EventArrived(key, t2)
	assert.True(t, m.HasPending(key), "two changes have arrived under this leader")
	assert.Equal(t, Arrivals{First: t1, FirstUnhandled: t1, Last: t2}, m.BeginAttempt(key))
}

func TestOwnStampIsKnown(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	m := &ownWrites{}
	assert.False(t, m.IsStamped(key, 0), "nothing was stamped")
	m.Stamped(key, 2, time.Time{})
	assert.True(t, m.IsStamped(key, 2), "the generation of the last stamp")
	assert.False(t, m.IsStamped(key, 3), "another writer has written since")
}

func TestForeignKeyIsTakenOverOnce(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	m := &takeovers{}
	assert.True(t, m.Allowed(key, "aaaaaaaa"), "this key was not replaced before")
	assert.True(t, m.Allowed(key, "aaaaaaaa"), "the write may have failed: what is due stays due")
	m.Record(key, "aaaaaaaa", "10")
	assert.False(t, m.Allowed(key, "aaaaaaaa"), "another installation wrote it back: two must not fight")
	assert.True(t, m.IsPending(key, "aaaaaaaa", "9"), "the watch is behind: no writer has written it back")
	assert.False(t, m.IsPending(key, "aaaaaaaa", "10"), "the workload has the version that was written")
	assert.False(t, m.IsPending(key, "aaaaaaaa", "11"), "another writer has written since")
	assert.False(t, m.IsPending(key, "aaaaaaaa", ""), "a version that is not known")
	assert.False(t, m.IsPending(key, "bbbbbbbb", "9"), "another key")
	assert.True(t, m.Allowed(key, "bbbbbbbb"), "another key was not replaced before")
	assert.True(t, m.Allowed(workload.Key{Name: "pay"}, "aaaaaaaa"), "each workload for itself")

	ring := digesttest.Ring(t, "a")
	ours, _ := ring.Newest()
	m.Record(key, ours.ID, "12")
	m.ForgetOwn(key, ring)
	assert.True(t, m.Allowed(key, ours.ID), "it was ours again: it may be lost once more")
	assert.False(t, m.Allowed(key, "aaaaaaaa"), "that of another installation was not")
}

// A read of the keys proves that one is lost only if it began after that one was met.
func TestForeignKeyIsMetOnce(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cart, pay := workload.Key{Name: "cart"}, workload.Key{Name: "pay"}
	ring := digesttest.Ring(t, "a")
	ours, _ := ring.Newest()
	m := &takeovers{}
	assert.Equal(t, t0, m.RecordForeign(cart, ours.ID, t0))
	assert.Equal(t, t0, m.RecordForeign(cart, ours.ID, t0.Add(time.Hour)), "the same")
	assert.Equal(t, t0.Add(time.Hour), m.RecordForeign(pay, ours.ID, t0.Add(time.Hour)), "each workload for itself")
	m.ForgetOwn(pay, ring)
	assert.Equal(t, t0.Add(2*time.Hour), m.RecordForeign(pay, ours.ID, t0.Add(2*time.Hour)), "it was ours meanwhile")
	assert.Equal(t, t0.Add(time.Hour), m.RecordForeign(cart, "aaaaaaaa", t0.Add(time.Hour)), "another key")
}

// After a migration, each workload has had a hash of another program.
func TestNothingIsKeptOfAForeignHashThatIsAdopted(t *testing.T) {
	t.Parallel()
	cart, pay := workload.Key{Name: "cart"}, workload.Key{Name: "pay"}
	m := &takeovers{}
	m.RecordForeign(cart, "aaaaaaaa", time.Time{})
	m.Record(cart, "", "10")
	assert.Empty(t, m.entries)

	ring := digesttest.Ring(t, "a")
	ours, _ := ring.Newest()
	m.Record(cart, ours.ID, "10")
	m.RecordForeign(pay, ours.ID, time.Time{})
	m.ForgetOwn(cart, ring)
	m.ForgetOwn(pay, ring)
	assert.Empty(t, m.entries, "of keys that are ours again, either")

	m.Record(cart, "bbbbbbbb", "11")
	m.RecordForeign(cart, "aaaaaaaa", time.Time{})
	m.Record(cart, "", "12")
	assert.False(t, m.Allowed(cart, "bbbbbbbb"), "the Record of another installation was taken over")
}

// Another writer may name a new key in each Record.
func TestForeignKeysThatAreTakenOverAreBounded(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	m := &takeovers{}
	for n := range 1_000 {
		id := digest.KeyID(fmt.Sprintf("%08x", n))
		assert.Equal(t, n < takeoversAtMost, m.Allowed(key, id), n)
		m.Record(key, id, "1")
	}
	assert.Len(t, m.entries[key].versions, takeoversAtMost)
	assert.False(t, m.Allowed(key, "00000000"), "it was taken over")
	assert.True(t, m.Allowed(workload.Key{Name: "pay"}, "00000009"), "each workload for itself")
}

func TestOldestDueReload(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &dueReloads{}
	_, count := m.Oldest()
	assert.Zero(t, count)
	m.Add(workload.Key{Name: "b"}, t0.Add(time.Minute))
	m.Add(workload.Key{Name: "a"}, t0)
	m.Add(workload.Key{Name: "a"}, t0.Add(time.Hour))
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
	d.Defer(key, Deferral{Since: start.Add(time.Second), Until: start.Add(3 * time.Second), Stored: true})
	assert.False(t, d.IgnoresEvents(key, start), "a configuration event leads to another attempt")
	assert.Equal(t, 2*time.Second, d.Wait(key, start, start.Add(time.Second)), "its own write is no reason to try earlier")
	assert.Zero(t, d.Wait(key, start, start.Add(3*time.Second)), "the pause is over")
	assert.Zero(t, d.Wait(key, start.Add(2*time.Second), start.Add(2*time.Second)), "the configuration has changed since")
	d.Defer(key, Deferral{Since: start.Add(4 * time.Second), Until: start.Add(9 * time.Second), IgnoresEvents: true})
	at := start.Add(5 * time.Second)
	assert.Equal(t, 4*time.Second, d.Wait(key, at, at), "under constant change there would be no wait at all")
	assert.Zero(t, d.WaitToWrite(key, at), "no attempt has failed")
	assert.True(t, d.IgnoresEvents(key, at), "the deferral is meant to outlast configuration events")
	d.Forget(key)
	assert.Zero(t, d.Wait(key, at, at), "nothing is due any more")
}

// Constant change would leave no pace otherwise.
func TestConfigEventBringsARetryForwardByALimitedTime(t *testing.T) {
	t.Parallel()
	key, start := workload.Key{Name: "cart"}, time.Now()
	const long = time.Minute
	for name, tc := range map[string]struct {
		wait, event time.Duration
		stored      bool
		// want is when the next attempt may be made; firm that no later event changes that.
		want time.Duration
		firm bool
	}{
		"no event":                        {wait: long, want: longestSoon, firm: true},
		"an event":                        {wait: long, event: 1, want: longestSoon, firm: true},
		"a short wait":                    {wait: time.Second, event: 1, want: time.Second, firm: true},
		"a write is stored, no event":     {wait: long, stored: true, want: long},
		"a write is stored, and an event": {wait: long, stored: true, event: 1, want: longestSoon, firm: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, last := &deferrals{}, start.Add(tc.event)
			d.Failed(key, Deferral{Since: start, Until: start.Add(tc.wait), Stored: tc.stored}, start)
			assert.Equal(t, tc.want, d.Wait(key, last, start))
			assert.Equal(t, tc.firm, d.IgnoresEvents(key, last))
			assert.Zero(t, d.Wait(key, last, start.Add(tc.want)))
			d.Written(key)
			assert.Equal(t, tc.stored, d.Wait(key, last, start) > 0)
		})
	}
}

func TestStateForgetsAWorkloadInAllParts(t *testing.T) {
	t.Parallel()
	s, key, now := &State{}, workload.Key{Name: "cart"}, time.Now()
	s.Changes.EventArrived(key, now)
	s.Due.Add(key, now)
	s.Deferrals.Defer(key, Deferral{Since: now, Until: now.Add(time.Second)})
	s.Writes.Stamped(key, 2, now)
	s.Takeovers.Record(key, "aaaaaaaa", "1")
	s.Warnings.Warn(key, "ReloadFailed", "a", now)
	s.Reports.Observe(key, "a", now)
	s.Contests.Wrote(key, "", now)
	s.Notices.Unanswered(key, "1", "a", nil)
	s.Forget(key)
	for name, kept := range map[string]int{
		"changes": len(s.Changes.entries), "due": len(s.Due.entries), "deferrals": len(s.Deferrals.entries), "writes": len(s.Writes.entries),
		"takeovers": len(s.Takeovers.entries), "warnings": len(s.Warnings.entries), "reports": len(s.Reports.entries), "contests": len(s.Contests.entries),
		"notices": len(s.Notices.entries),
	} {
		assert.Zero(t, kept, name)
	}
}

func TestCacheIsBehindUntilItShowsOurWrite(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "cart"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &ownWrites{}
	assert.False(t, m.IsCacheBehind(key, 1, t0), "nothing was written")
	m.RecordWrite(key, 4, t0)
	assert.True(t, m.IsCacheBehind(key, 3, t0.Add(time.Second)), "the cache shows a generation before the write")
	assert.False(t, m.IsCacheBehind(key, 4, t0.Add(time.Second)), "the cache shows the write")
	assert.False(t, m.IsCacheBehind(key, 1, t0.Add(behindAtMost)), "it was created again, or restored: it must not be left alone for ever")
	assert.True(t, m.IsLacking(key, 3), "generation 4 is not in the cache yet")
	assert.False(t, m.IsLacking(key, 4), "generation 4 is in the cache")
}
