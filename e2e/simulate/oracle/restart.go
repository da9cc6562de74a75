package oracle

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// A Rollout can ask to be restarted without a new template: the program sets spec.restartAt, and the controller replaces the pods that were
// created before that time. To the oracle this is a stamp with the template and the managed annotations of the one before: what the program
// has read for it, it may take for the content of the pods.

// rolloutStrategy is the annotation that asks for it.
const rolloutStrategy = otherDomain + "rollout-strategy"

// asksForRestarts reports whether a reload of a workload is to leave the template as it is.
func asksForRestarts(object world.Object) bool {
	return pluralOf(object) == rollouts && world.Text(world.Annotations(object), rolloutStrategy) == "restart"
}

// restartAt returns before when pods of a workload must have been created to be replaced; zero if there is no such time.
func restartAt(object world.Object) time.Time {
	at, err := time.Parse(time.RFC3339, world.Text(object, "spec", "restartAt"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// restarted returns the time of a restart by the program; zero if a change is none. Two within a second have the same time: then the
// explanation shows that there are two.
func (l *rules) restarted(c world.Commit) time.Time {
	if c.Key.Resource.Plural != rollouts || !l.isProgram(c.Call) {
		return time.Time{}
	}
	name := l.options.Prefix + reloadAnnotation
	explained := bytes.Contains(c.Call.Body, []byte("restartAt")) && world.Annotations(c.Old)[name] != world.Annotations(c.New)[name]
	if restartAt(c.New).Equal(restartAt(c.Old)) && !explained {
		return time.Time{}
	}
	return restartAt(c.New)
}

// endsRestart reports whether a user takes the time of the last restart by the program away, or sets an earlier one, or one in the future, before
// all pods are replaced. Another later restart by a user takes its place.
func (l *ledger) endsRestart(w *workload, c world.Commit) bool {
	if c.Key.Resource.Plural != rollouts || l.isProgram(c.Call) {
		return false
	}
	for _, s := range slices.Backward(w.stamps) {
		if s.isRestart() {
			done, _ := time.Parse(time.RFC3339, world.Text(c.Old, "status", "restartedAt"))
			incomplete := !restartAt(c.Old).Before(s.restartAt) && done.Before(s.restartAt)
			return incomplete && (restartAt(c.New).Before(s.restartAt) || l.putsOff(c))
		}
	}
	return false
}

// putsOff reports whether a user sets a later time that is in the future, or may be by the clock of a webhook.
func (l *ledger) putsOff(c world.Commit) bool {
	at := restartAt(c.New)
	return at.After(restartAt(c.Old)) && (at.After(c.At) || l.faults.clocksWrong(c.At))
}

// recordEndOfRestart records that a restart has ended where the webhook may not have seen it: then pods may be left.
func (l *ledger) recordEndOfRestart(w *workload, c world.Commit) {
	if l.endsRestart(w, c) && !l.seen(w, c) {
		w.cutShort = c.Version
	}
}

// isRestart reports whether a stamp restarts the pods without a new template.
func (s *stamp) isRestart() bool { return !s.restartAt.IsZero() }

// restartsUntil returns how many restarts there were until a stamp, that included, after the one before.
func restartsUntil(before, s *stamp) int {
	count := 0
	if before != nil {
		count = before.restarts
	}
	if s.isRestart() {
		count++
	}
	return count
}

// replacesPods reports whether a stamp replaces the pods of the one before, other than by what users see of the template.
func (s *stamp) replacesPods(before *stamp) bool { return s.managed != before.managed || s.isRestart() }

// readsItself reports whether what the program takes for the content of the pods is what the loop has read right before a write: the webhook
// has no part in it, or may have none. Of custom resources that are held, the webhook takes what the loop has read.
func (l *ledger) readsItself(w *workload, s *stamp, c world.Commit) bool {
	if l.options.Direct || isDirect(s.call) {
		return true
	}
	return s.isRestart() && (!l.seen(w, c) || slices.ContainsFunc(w.refs, func(r ref) bool { return isReferent(r.plural) }))
}

// withoutRestart returns two versions of a workload between which the program may have restarted the pods, without the time of the restart;
// others as they are.
func withoutRestart(before, after world.Object) (a, b world.Object) {
	if !asksForRestarts(before) || restartAt(after).IsZero() {
		return before, after
	}
	plain := func(object world.Object) world.Object {
		spec := maps.Clone(world.Section(object, "spec"))
		delete(spec, "restartAt")
		return world.With(object, spec, "spec")
	}
	return plain(before), plain(after)
}
