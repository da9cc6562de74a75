package oracle

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// unharmedLaw is the law "unharmed" for what users write.
type unharmedLaw struct {
	*ledger
	passive
}

// storing is the law "unharmed" for what is stored: what a user sent, and what the program did not have to touch, is
// as it was but for the program's annotations.
func (l *unharmedLaw) storing(c world.Commit) {
	if world.PodPath(c.Key.Resource.Plural) == nil || c.Call == nil || c.New == nil || c.Call.Subresource != "" || c.Sent == nil {
		return
	}
	program := l.isProgram(c.Call)
	before := c.Sent
	if program {
		if before = c.Old; before == nil || foreignKeys(world.Annotations(before)) {
			return
		}
	}
	l.count("writes compared")
	after := c.New
	if program {
		before, after = withoutRestart(withoutPause(before, after))
	} else {
		before = withKeptPause(c.Old, before, after)
	}
	path, ok := l.difference(c.Key.Resource.Plural, l.options.Foreign(before), l.options.Foreign(after))
	if ok {
		return
	}
	if program {
		l.violate(c.At, broken{"unharmed", idOf(c.Key).String(), "program"}, "the program's %s at %s changed %s, which is the user's",
			c.Call.Verb, l.when(c.At), path)
		return
	}
	l.violate(c.At, broken{"unharmed", idOf(c.Key).String(), "stored"}, "%s sent a %s at %s; what was stored differs in %s",
		c.Call.Client, c.Call.Verb, l.when(c.At), path)
}

// ofServer reports whether the API server writes a field of the metadata itself.
func ofServer(name string) bool {
	switch name {
	case "generation", "resourceVersion", "managedFields", "uid", "creationTimestamp", "selfLink", "name", "namespace", "generateName",
		"deletionTimestamp", "deletionGracePeriodSeconds":
		return true
	}
	return false
}

// difference compares two forms of a workload but for the program's annotations and what the API server writes. It returns
// the first field that differs.
func (l *unharmedLaw) difference(plural string, a, b world.Object) (path string, same bool) {
	managed := func(name string) bool { return isManagedAnnotation(name, l.options.Prefix) }
	split := func(name string) bool { return name == "annotations" || ofServer(name) }
	switch {
	case !sameWithout(world.Section(a, "metadata"), world.Section(b, "metadata"), split):
		return "metadata", false
	case !sameWithout(world.Annotations(a), world.Annotations(b), managed):
		return "metadata.annotations", false
	}
	top := func(name string) bool {
		return name == "metadata" || name == "status" || name == "spec" || name == "kind" || name == "apiVersion"
	}
	if !sameWithout(a, b, top) {
		return "a field beside spec", false
	}
	return l.specDifference(world.PodPath(plural), world.Section(a, "spec"), world.Section(b, "spec"), "spec")
}

// specDifference goes down to the pod template, whose annotations are compared without managed annotations.
func (l *unharmedLaw) specDifference(path []string, a, b world.Object, at string) (string, bool) {
	if len(path) == 1 {
		managed := func(name string) bool { return isManagedAnnotation(name, l.options.Prefix) }
		rest := func(name string) bool { return name == "annotations" || name == "creationTimestamp" }
		switch {
		case !sameWithout(world.Annotations(a), world.Annotations(b), managed):
			return at + ".metadata.annotations", false
		case !sameWithout(world.Section(a, "metadata"), world.Section(b, "metadata"), rest):
			return at + ".metadata", false
		case !sameWithout(a, b, func(name string) bool { return name == "metadata" || name == "spec" }),
			!equal(plainSpec(world.Section(a, "spec")), plainSpec(world.Section(b, "spec"))):
			return at + ".spec", false
		}
		return "", true
	}
	next := path[1]
	if !sameWithout(a, b, func(name string) bool { return name == next }) {
		return at, false
	}
	return l.specDifference(path[1:], world.Section(a, next), world.Section(b, next), at+"."+next)
}

// reply is the law "unharmed" for answers: no write of a user fails because of the program.
func (l *unharmedLaw) reply(r world.Reply) {
	if l.isProgram(r.Call) {
		return
	}
	if isWriteVerb(r.Call.Verb) && l.isRight(r) {
		l.count("right requests for a reload")
	}
	if r.Webhook != l.options.WebhookName || !isWriteVerb(r.Call.Verb) || r.Failure == nil && r.Status < 300 {
		return
	}
	message := ""
	if r.Failure != nil {
		message = r.Failure.Message
	}
	if strings.Contains(message, "failed calling webhook") && l.uncalled(r) {
		l.count("rejections excused: webhook away and failurePolicy Fail")
		return
	}
	how, excused := l.rejectedUnder(r)
	if excused {
		l.count("rejections excused: verified reload")
		return
	}
	subject := idOf(r.Call.Key).String()
	l.violate(r.At, broken{"unharmed", subject, "rejected" + how}, "the %s of %s at %s failed because of %s: status %d, %s",
		r.Call.Verb, r.Call.Client, l.when(r.Call.Arrived), r.Webhook, r.Status, message)
}

// rejectedUnder returns the circumstances in which a write was rejected. A new request for a reload that changes nothing else
// may be, unless it is right.
func (l *unharmedLaw) rejectedUnder(r world.Reply) (how string, excused bool) {
	w := l.workloads[idOf(r.Call.Key)]
	unproven := r.Status == http.StatusConflict || r.Status == http.StatusServiceUnavailable
	switch {
	case !unproven || !l.asksForReload(r.Call, w):
		return "", false
	case !changesTemplate(r.Call, w) && l.isRight(r):
		return "/right", false
	case !changesTemplate(r.Call, w):
		return "", true
	case l.isBound(r.Call):
		return "/with-template/bound", false
	}
	return "/with-template", false
}

// reroute is how long calls may still go to a replica that does not answer any more, their timeout included.
const reroute = 15 * time.Second

// uncalled reports whether a fault may be why the API server could not call the webhook: one that lasts, or that was over not long ago.
func (l *unharmedLaw) uncalled(r world.Reply) bool {
	t := &l.faults
	from := r.Call.Arrived
	if !t.working() || !t.alone.IsZero() && t.alone.Add(recovery).After(from) || l.slow.during(r.Call.Key.Namespace, from, r.At) {
		return true
	}
	return slices.ContainsFunc(t.spans, func(s *span) bool { return s.uncallsAt(from) })
}

// uncallsAt reports whether a fault may still keep the API server from calling the webhook at a moment.
func (s *span) uncallsAt(from time.Time) bool {
	switch {
	case s.deniesWorkloads(), s.kind == writesDenied && s.scope == eventsResource,
		slices.Contains([]string{"clock", "namespace-webhook", "watch-held", writesHang}, s.kind):
		return false
	case s.outage() && s.covered && (s.open || s.coveredAtEnd):
		return s.from.Add(reroute).After(from)
	case s.outage() && s.open:
		return s.from.Add(recovery).After(from)
	}
	return s.open || s.to.Add(recovery).After(from)
}

// changesTemplate reports whether a request changes the pod template, too: then it is a rollback or another write that brings
// an old request for a reload along, and asks for nothing.
func changesTemplate(call *world.Call, w *workload) bool {
	if w == nil || call.Verb == "create" {
		return false
	}
	if call.Verb == "patch" {
		return isDirect(call)
	}
	body := world.Object{}
	if err := yaml.Unmarshal(call.Body, &body); err != nil {
		return false
	}
	if last := w.last(); last != nil && last.version > call.ArrivedVersion {
		return false // it was compared with another template
	}
	sent := world.Section(body, world.TemplatePath(w.id.plural)...)
	return !covers(items(world.Section(w.template, "spec"), "containers"), items(world.Section(sent, "spec"), "containers"))
}

// covers reports whether a stored value is what was sent, but for the defaults of the API server.
func covers(stored, sent any) bool {
	switch s := sent.(type) {
	case map[string]any:
		have, ok := stored.(map[string]any)
		for name, value := range s {
			ok = ok && covers(have[name], value)
		}
		for _, name := range []string{"args", "command", "env", "envFrom", "volumeMounts"} { // without a default
			ok = ok && (s[name] != nil || empty(have[name]))
		}
		return ok
	case []any:
		have, _ := stored.([]any)
		return slices.EqualFunc(have, s, covers)
	}
	return equal(stored, sent)
}

func isWriteVerb(verb string) bool {
	return verb == "create" || verb == "update" || verb == "patch" || verb == "delete"
}
