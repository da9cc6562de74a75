package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// contestedWithin is in which time the writes of a record are counted that another writer has removed.
	contestedWithin = time.Minute
	// mostContested is how many of them a process may make: pauses that double from a second make it nine, and each answer that is lost adds
	// one. Another process begins anew, since nothing is kept on a workload whose annotations are removed.
	mostContested = 20
	// surelyContested is how many there must be until an Event has to say so, contestNotice how long that may take.
	surelyContested = 6
	contestNotice   = 30 * time.Second
)

// contestedLaw has the laws "hot-loop" and "visible" for a record that another writer removes after each write.
type contestedLaw struct {
	*ledger
	passive

	contests map[string]*contest
}

// contest is about the record of one workload, by uid.
type contest struct {
	// removed means that another writer has removed the record since the program wrote it.
	removed bool
	// writes are the last ones of the program after a removal.
	writes []contestWrite
	// since is when there were so many writes that an Event must say so; zero if there were not.
	since time.Time
}

// contestWrite is one of a process.
type contestWrite struct {
	at time.Time
	by string
}

func newContestedLaw(l *ledger) *contestedLaw {
	return &contestedLaw{ledger: l, contests: map[string]*contest{}}
}

// stored counts the writes of a record that another writer has removed.
func (l *contestedLaw) stored(c world.Commit) {
	w := l.workloads[idOf(c.Key)]
	if w == nil || c.Old == nil || c.New == nil {
		return
	}
	before, after := l.recordOf(c.Old), l.recordOf(c.New)
	if before == after {
		return
	}
	one := l.contests[w.uid]
	if one == nil {
		one = &contest{}
		l.contests[w.uid] = one
	}
	switch {
	case !l.isProgram(c.Call):
		one.removed = one.removed || after == ""
	case before != "":
		one.writes = nil // it was not removed after the last write, as where several controllers write in turns
	case one.removed:
		one.removed = false
		past := func(w contestWrite) bool { return c.At.Sub(w.at) > contestedWithin }
		one.writes = append(slices.DeleteFunc(one.writes, past), contestWrite{c.At, c.Call.Client})
		l.judge(w, one, c)
	}
}

// judge is the law "hot-loop" for a record that another writer removes each time: the program writes it ever more rarely.
func (l *contestedLaw) judge(w *workload, one *contest, c world.Commit) {
	l.count("records written after a removal")
	if len(one.writes) >= surelyContested && one.since.IsZero() {
		one.since = c.At
	}
	if n := one.writesBy(c.Call.Client); n > mostContested && l.timingOf(c.Call.Client).refractory > 0 {
		l.violate(c.At, broken{"hot-loop", w.id.String(), "contested"},
			"another writer removes its record after each write, and %s wrote it %d times within %s", c.Call.Client, n, contestedWithin)
	}
}

// writesBy returns how many of the writes a process has made.
func (c *contest) writesBy(process string) (n int) {
	for _, w := range c.writes {
		if w.by == process {
			n++
		}
	}
	return n
}

// watch is the law "visible" for such a record: an Event says so.
func (l *contestedLaw) watch(w *workload, now time.Time) {
	one := l.contests[w.uid]
	if one == nil || one.since.IsZero() || now.Sub(one.since) < contestNotice {
		return
	}
	calm, known := l.calmSince(w)
	since := one.since
	one.since = time.Time{}
	if !known || since.Sub(calm) < contestedWithin || !w.eligible {
		return
	}
	l.count("contests judged")
	if !l.events.contested[w.uid].IsZero() {
		return
	}
	l.violate(now, broken{"visible", w.id.String(), "contested"},
		"another writer removed its record %d times within %s until %s, but no Event says so", surelyContested, contestedWithin, l.when(since))
}
