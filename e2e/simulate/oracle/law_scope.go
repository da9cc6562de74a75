package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// notice is how long the program may act by what it knew before a change of labels, lists or scope.
const notice = 15 * time.Second

// scopeLaw is the law "scope" for what is none of the program's business.
type scopeLaw struct {
	*ledger
	passive
}

// outside returns why a workload is none of the program's business; empty if it is, or may be.
func (l *scopeLaw) outside(w *workload, now time.Time) string {
	calm, known := l.calmSince(w)
	if !known || w.unclear || now.Sub(later(calm, w.changed)) < notice {
		return ""
	}
	if !w.inScope {
		return "is out of scope"
	}
	if len(w.refs) == 0 && !w.dynamic && l.allManagedAnnotations(w.object) == "\n\n" {
		return "has no annotation of pod-reloader"
	}
	return ""
}

// request is the law "scope" for requests: the program writes no workload that is none of its business.
func (l *scopeLaw) request(call *world.Call) {
	w := l.workloads[idOf(call.Key)]
	if w == nil || !call.Write() || !l.isProgram(call) {
		return
	}
	l.count("writes of the program")
	if w.inScope && endsPause(call) {
		return // a pause ends in any case
	}
	if why := l.outside(w, call.Arrived); why != "" {
		l.violate(call.Arrived, broken{"scope", w.id.String(), "request"},
			"the program sent a %s at %s, but the workload %s", call.Verb, l.when(call.Arrived), why)
	}
}

// exclusionLaw is the law "scope" for workloads that are excluded or opted out.
type exclusionLaw struct {
	*ledger
	passive
}

// request is the law "scope" for requests about excluded workloads: the program asks for no reload.
func (l *exclusionLaw) request(call *world.Call) {
	w := l.workloads[idOf(call.Key)]
	if w == nil || !call.Write() || !l.isProgram(call) {
		return
	}
	calm, known := l.calmSince(w)
	if !w.excluded || w.unclear || !known || call.Arrived.Sub(later(calm, w.changed)) < notice {
		return
	}
	if value, known := requested(call, l.options.Prefix+requestAnnotation); known && value != nil {
		l.violate(call.Arrived, broken{"scope", w.id.String(), "excluded"},
			"it is excluded, but the program asked for a reload at %s", l.when(call.Arrived))
	}
}

// storing judges a user's write of a workload that is and stays out of scope.
func (l *scopeLaw) storing(c world.Commit) {
	w := l.workloads[idOf(c.Key)]
	if w == nil || w.object == nil || c.New == nil || c.Call == nil || l.isProgram(c.Call) {
		return
	}
	if c.Sent == nil || c.Call.Subresource != "" || w.inScope || l.scopeOf(c.New, w) || l.outside(w, c.At) == "" {
		return
	}
	if l.allManagedAnnotations(c.Sent) != l.allManagedAnnotations(c.New) {
		l.violate(c.At, broken{"scope", w.id.String(), "webhook"}, "it is out of scope, but the webhook changed annotations in the %s at %s",
			c.Call.Verb, l.when(c.At))
	}
}

// storing judges a write of the program to a workload that is excluded or opted out.
func (l *exclusionLaw) storing(c world.Commit) {
	w := l.workloads[idOf(c.Key)]
	if w == nil || w.object == nil || c.New == nil || !l.isProgram(c.Call) {
		return
	}
	if !l.mustLeave(w, c.At) {
		return
	}
	l.count("writes of excluded workloads judged")
	before, after := texts(world.Annotations(c.Old)), texts(world.Annotations(c.New))
	delete(before, l.options.Prefix+requestAnnotation)
	delete(before, pausedAt) // a pause ends in any case
	path := world.TemplatePath(w.id.plural)
	same := sortedText(before) == sortedText(after) && equal(world.Section(c.Old, path...), world.Section(c.New, path...))
	if !same {
		l.violate(c.At, broken{"scope", w.id.String(), "excluded"},
			"it is excluded or opted out, but the program's %s at %s did more than remove a request for a reload", c.Call.Verb, l.when(c.At))
	}
}

// mustLeave reports whether a workload is excluded or opted out, and the program knows that.
func (l *exclusionLaw) mustLeave(w *workload, now time.Time) bool {
	calm, known := l.calmSince(w)
	if !known || now.Sub(later(calm, w.changed)) < notice || w.unclear {
		return false
	}
	return w.excluded || len(w.refs) == 0 && !w.dynamic
}
