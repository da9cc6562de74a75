package oracle

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// blamedLaw is the law "visible" for an Event that says that another webhook, or another installation, removes what the program writes:
// where there is none, it sends a user to search for what does not exist.
type blamedLaw struct {
	*ledger
	passive
}

func (l *blamedLaw) stored(c world.Commit) {
	if c.New == nil || !l.isProgram(c.Call) || world.Text(c.New, "reason") != "StampLost" || l.mayBeUndone() {
		return
	}
	about := subjectOf(c.New)
	l.violate(c.At, broken{"visible", world.Text(about, "name"), "blamed"},
		"an Event says at %s that the stamp of the %s %s is not stored, but nothing removes it: %s",
		l.when(c.At), world.Text(about, "kind"), world.Text(about, "name"), noteOf(c.New))
}

// mayBeUndone reports whether anything has removed or replaced so far the stamps that the program writes, or its requests for them.
func (l *blamedLaw) mayBeUndone() bool {
	return l.options.Sides != nil || slices.ContainsFunc(l.faults.spans, (*span).preventsStamps)
}
