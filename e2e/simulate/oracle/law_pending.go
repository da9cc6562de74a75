package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// pendingLaw is the law "explained" for what the Event of a reload says of pods that do not restart yet.
type pendingLaw struct {
	*ledger
	passive

	// reasons has why the pods of a workload waited, in the order of time.
	reasons map[*workload][]pendingSince
	// periods has when a Deployment last asked for a pause after a reload.
	periods map[*workload]time.Time
}

// pendingSince is why the pods of a workload wait from a moment on; empty if they do not.
type pendingSince struct {
	reason string
	at     time.Time
}

func newPendingLaw(l *ledger) *pendingLaw {
	return &pendingLaw{ledger: l, reasons: map[*workload][]pendingSince{}, periods: map[*workload]time.Time{}}
}

// pendingOf returns why the controller of a workload leaves pods of an earlier template alone; empty if it does not. A partition keeps
// those with a lower ordinal.
func pendingOf(object world.Object) (reason string, partition int) {
	spec := world.Section(object, "spec")
	strategy := world.Section(spec, "updateStrategy")
	n, _ := numberOf(world.Section(strategy, "rollingUpdate")["partition"])
	switch {
	case spec["paused"] == true:
		return "paused", 0
	case world.Text(strategy, "type") == "OnDelete":
		return "OnDelete", 0
	case n > 0:
		return fmt.Sprintf("partition %v", n), int(n)
	}
	return "", 0
}

// stored records why pods wait, and judges an Event.
func (l *pendingLaw) stored(c world.Commit) {
	if c.Key.Resource.Plural == eventsResource {
		l.judge(c)
		return
	}
	w := l.workloads[idOf(c.Key)]
	if w == nil || c.New == nil {
		return
	}
	if pausingOf(c.Old).period > 0 || pausingOf(c.New).period > 0 {
		l.periods[w] = c.At
	}
	known := l.reasons[w]
	reason, _ := pendingOf(c.New)
	if len(known) == 0 || known[len(known)-1].reason != reason {
		l.reasons[w] = append(known, pendingSince{reason, c.At})
	}
}

// hasOtherWords reports whether what happens to the pods of a workload is not only a matter of its spec: a reload pauses the Deployment, or
// runs the CronJob. The Event has the pause of the moment of the reload.
func (l *pendingLaw) hasOtherWords(w *workload) bool {
	return w.id.plural == "cronjobs" || pausingOf(w.object).period > 0 || !l.periods[w].Before(w.story.noted)
}

// judge looks whether the Event of the last reload of a workload says whether the pods wait, and why.
func (l *pendingLaw) judge(c world.Commit) {
	if c.Old != nil || c.New == nil || !l.isProgram(c.Call) || world.Text(c.New, "reason") != "Reloaded" {
		return
	}
	w := l.byUID[world.Text(subjectOf(c.New), "uid")]
	if w == nil || w.gone || l.hasOtherWords(w) || w.story.unannotated > 0 || w.story.returned || !l.aboutLast(w, c.New) {
		return
	}
	l.count("reasons of waiting pods judged")
	said, allowed := pendingIn(noteOf(c.New)), l.reasonsSince(w, w.story.noted)
	if !slices.Contains(allowed, said) {
		l.violate(c.At, broken{"explained", w.id.String(), "pending"},
			"the Event %s says %q, but since the reload of %s pods wait as follows: %q", c.Key.Name, noteOf(c.New), l.when(w.story.noted), allowed)
	}
}

// aboutLast reports whether an Event is about the reload that the annotation of a workload names.
func (l *pendingLaw) aboutLast(w *workload, event world.Object) bool {
	var last lastReload
	if json.Unmarshal([]byte(world.Text(world.Annotations(w.object), l.options.Prefix+reloadAnnotation)), &last) != nil {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, last.Time)
	happened, unknown := time.Parse(time.RFC3339Nano, world.Text(event, "eventTime"))
	twice := slices.ContainsFunc(last.Before, func(earlier struct{ Time string }) bool { return earlier.Time == last.Time })
	return err == nil && unknown == nil && at.Equal(happened) && !twice
}

// reasonsSince returns why the pods of a workload waited, from the last reason before a moment on.
func (l *pendingLaw) reasonsSince(w *workload, since time.Time) []string {
	var reasons []string
	for _, p := range l.reasons[w] {
		if p.at.Before(since) {
			reasons = reasons[:0]
		}
		reasons = append(reasons, p.reason)
	}
	return reasons
}

// pendingIn returns the reason in the text of an Event.
func pendingIn(note string) string {
	_, rest, _ := strings.Cut(note, "rollout pending (")
	reason, _, _ := strings.Cut(rest, ")")
	return reason
}
