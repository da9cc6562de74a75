package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// notice is how long the program may act by what it knew before a change of labels, lists or scope.
const notice = 15 * time.Second

// outside returns why a workload is none of the program's business; empty if it is, or may be.
func (o *Oracle) outside(w *workload, now time.Time) string {
	calm, known := o.calmSince(w)
	if !known || w.unclear || now.Sub(later(calm, w.changed)) < notice {
		return ""
	}
	if !w.inScope {
		return "is out of scope"
	}
	if len(w.refs) == 0 && !w.dynamic && o.marksOfAll(w.object) == "\n\n" {
		return "has no annotation of pod-reloader"
	}
	return ""
}

// judgeScopeRequest is the law "scope" for requests: the program writes no workload that is none of its business.
func (o *Oracle) judgeScopeRequest(call *world.Call) {
	if !call.Write() {
		return
	}
	w := o.workloads[idOf(call.Key)]
	if w == nil {
		return
	}
	o.count("writes of the program")
	o.judgeExcludedRequest(w, call)
	o.judgeLeader(w, call)
	o.judgeRate(w, call)
	if why := o.outside(w, call.Arrived); why != "" {
		o.violate(call.Arrived, broken{"scope", w.id.String(), "request"}, "the program sent a %s at %s, but the workload %s", call.Verb, o.when(call.Arrived), why)
	}
}

// judgeExcludedRequest is the law "scope" for requests about excluded workloads: the program asks for no reload.
func (o *Oracle) judgeExcludedRequest(w *workload, call *world.Call) {
	calm, known := o.calmSince(w)
	if !w.excluded || w.unclear || !known || call.Arrived.Sub(later(calm, w.changed)) < notice {
		return
	}
	if value, known := requested(call, o.options.Prefix+requestMark); known && value != nil {
		o.violate(call.Arrived, broken{"scope", w.id.String(), "excluded"}, "it is excluded, but the program asked for a reload at %s", o.when(call.Arrived))
	}
}

// judgeScopeOf is the law "scope" for what is stored. The workload is as it was before the commit.
func (o *Oracle) judgeScopeOf(c world.Commit) {
	w := o.workloads[idOf(c.Key)]
	switch {
	case w == nil || w.object == nil || c.New == nil || c.Call == nil:
	case o.options.Program(c.Call.Client):
		o.judgeScopeOfLoop(w, c)
	default:
		o.judgeScopeOfWebhook(w, c)
	}
}

// judgeScopeOfWebhook judges a user's write of a workload that is and stays out of scope.
func (o *Oracle) judgeScopeOfWebhook(w *workload, c world.Commit) {
	if c.Sent == nil || c.Call.Subresource != "" || w.inScope || o.scopeOf(c.New, w) || o.outside(w, c.At) == "" {
		return
	}
	if o.marksOfAll(c.Sent) != o.marksOfAll(c.New) {
		o.violate(c.At, broken{"scope", w.id.String(), "webhook"}, "it is out of scope, but the webhook changed annotations in the %s at %s",
			c.Call.Verb, o.when(c.At))
	}
}

// judgeScopeOfLoop judges a write of the program to a workload that is excluded or opted out.
func (o *Oracle) judgeScopeOfLoop(w *workload, c world.Commit) {
	prefix := o.options.Prefix
	calm, known := o.calmSince(w)
	if !known || c.At.Sub(later(calm, w.changed)) < notice || !w.excluded && (len(w.refs) > 0 || w.dynamic) || w.unclear {
		return
	}
	o.count("writes of excluded workloads judged")
	before, after := texts(annotationsOf(c.Old)), texts(annotationsOf(c.New))
	delete(before, prefix+requestMark)
	delete(before, pausedAt) // a pause ends in any case
	path := templatePath(w.id.plural)
	same := sortedText(before) == sortedText(after) && equal(section(c.Old, path...), section(c.New, path...))
	if !same {
		o.violate(c.At, broken{"scope", w.id.String(), "excluded"},
			"it is excluded or opted out, but the program's %s at %s did more than remove a request for a reload", c.Call.Verb, o.when(c.At))
	}
}

func (o *Oracle) scopeOf(object world.Object, w *workload) bool {
	var labels map[string]string
	if namespace := o.namespaces[w.id.namespace]; namespace != nil {
		labels = namespace.labels
	}
	return o.scope.serves(w.id.plural) && o.scope.inScope(w.id.namespace, labels, texts(labelsOf(object)))
}
