package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// blamedLaw is the law "visible" for an Event that says that another webhook, or another installation, removes what the program writes:
// where there is none, it sends a user to search for what does not exist.
type blamedLaw struct {
	*ledger
	passive
}

func (l *blamedLaw) stored(c world.Commit) {
	if c.New == nil || !l.isProgram(c.Call) || world.Text(c.New, "reason") != "StampLost" {
		return
	}
	about := subjectOf(c.New)
	if w := l.byUID[world.Text(about, "uid")]; w != nil && l.mayBeUndone(w) {
		return
	}
	l.violate(c.At, broken{"visible", world.Text(about, "name"), "blamed"},
		"an Event says at %s that the stamp of the %s %s is not stored, but nothing removes it: %s",
		l.when(c.At), world.Text(about, "kind"), world.Text(about, "name"), noteOf(c.New))
}

// mayBeUndone reports whether anything may have removed or replaced a stamp of a workload, or the request for one, since the last one that
// is stored. The Event may be late.
func (l *blamedLaw) mayBeUndone(w *workload) bool {
	var since time.Time
	for _, s := range w.stamps {
		if s.hashed() {
			since = s.at.Add(-untilSaid - l.promptBound())
		}
	}
	return l.options.Sides != nil || l.stampsPrevented(w, since)
}
