package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// warnedLaw is the law "unharmed" for warnings: a user who has written no managed annotation is not warned of one that was restored.
type warnedLaw struct {
	*ledger
	passive

	// plain are the requests of users that were stored, have no answer yet, and wrote no managed annotation.
	plain map[*world.Call]bool
}

func newWarnedLaw(l *ledger) *warnedLaw { return &warnedLaw{ledger: l, plain: map[*world.Call]bool{}} }

func (l *warnedLaw) storing(c world.Commit) {
	path := world.PodPath(c.Key.Resource.Plural)
	if path == nil || c.Call == nil || l.isProgram(c.Call) || c.Old == nil || c.Sent == nil {
		return
	}
	if !l.writesManaged(c.Old, c.Sent) && !l.writesManaged(world.Section(c.Old, path...), world.Section(c.Sent, path...)) {
		l.plain[c.Call] = true
	}
}

// writesManaged reports whether a user has given a managed annotation another value; one that is left out may mean nothing.
func (l *warnedLaw) writesManaged(before, sent world.Object) bool {
	old := world.Annotations(before)
	for name, value := range world.Annotations(sent) {
		if isManagedAnnotation(name, l.options.Prefix) && !equal(value, old[name]) {
			return true
		}
	}
	return false
}

// unchecked are the first words of the warnings about writes that the webhook passes without a decision: it decides on what nothing
// disturbs.
func unchecked() []string {
	return []string{
		"pod-reloader could not check this write", "pod-reloader could not read this write",
		"pod-reloader failed and passed this write unchanged",
	}
}

func (l *warnedLaw) reply(r world.Reply) {
	l.judgeCall(r)
	if !l.plain[r.Call] {
		return
	}
	delete(l.plain, r.Call)
	l.count("warnings judged")
	wrong := slices.IndexFunc(r.Warnings, func(text string) bool { return strings.Contains(text, "has restored them") })
	// What a strategy writes in the environment is no annotation.
	if wrong >= 0 && l.options.Strategy == "" && !l.policy.strategies {
		l.violate(r.At, broken{"unharmed", idOf(r.Call.Key).String(), "warned"}, "the %s of %s at %s wrote no managed annotation, but the answer warns: %s",
			r.Call.Verb, r.Call.Client, l.when(r.Call.Arrived), r.Warnings[wrong])
	}
}

// tardy is how long the webhook may hold a write of a user that nothing disturbs.
const tardy = time.Second

// judgeCall judges the answer to a write of a user that the webhook saw while nothing disturbed it.
func (l *warnedLaw) judgeCall(r world.Reply) {
	w := l.workloads[idOf(r.Call.Key)]
	if w == nil || l.isProgram(r.Call) || !slices.Contains(r.Called, l.options.WebhookName) || !l.couldSee(w, r) {
		return
	}
	l.count("calls of the webhook judged")
	for _, text := range r.Warnings {
		if slices.ContainsFunc(unchecked(), func(words string) bool { return strings.HasPrefix(text, words) }) {
			l.violate(r.At, broken{"unharmed", w.id.String(), "unchecked"}, "nothing disturbed the %s of %s at %s, but the answer warns: %s",
				r.Call.Verb, r.Call.Client, l.when(r.Call.Arrived), text)
		}
	}
	if took := r.At.Sub(r.Call.Arrived); took > l.jitter+tardy {
		l.violate(r.At, broken{"unharmed", w.id.String(), "late"}, "nothing disturbed the %s of %s at %s, but it took %s",
			r.Call.Verb, r.Call.Client, l.when(r.Call.Arrived), took)
	}
}
