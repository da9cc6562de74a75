package oracle

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// judgeUnharmed is the law "unharmed" for what is stored: what a user sent, and what the program did not have to touch, is
// as it was but for the program's annotations.
func (o *Oracle) judgeUnharmed(c world.Commit) {
	if c.Call == nil || c.New == nil || c.Call.Subresource != "" || c.Sent == nil {
		return
	}
	program := o.options.Program(c.Call.Client)
	before := c.Sent
	if program {
		if before = c.Old; before == nil || foreignKeys(annotationsOf(before)) {
			return
		}
	}
	o.count("writes compared")
	after := c.New
	if program {
		before, after = withoutPause(before, after)
	}
	path, ok := o.difference(c.Key.Resource.Plural, o.options.Foreign(before), o.options.Foreign(after))
	if ok {
		return
	}
	if program {
		o.violate(c.At, broken{"unharmed", idOf(c.Key).String(), "program"}, "the program's %s at %s changed %s, which is the user's",
			c.Call.Verb, o.when(c.At), path)
		return
	}
	o.violate(c.At, broken{"unharmed", idOf(c.Key).String(), "stored"}, "%s sent a %s at %s; what was stored differs in %s",
		c.Call.Client, c.Call.Verb, o.when(c.At), path)
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
func (o *Oracle) difference(plural string, a, b world.Object) (path string, same bool) {
	marks := func(name string) bool { return isMark(name, o.options.Prefix) }
	split := func(name string) bool { return name == "annotations" || ofServer(name) }
	switch {
	case !sameWithout(section(a, "metadata"), section(b, "metadata"), split):
		return "metadata", false
	case !sameWithout(annotationsOf(a), annotationsOf(b), marks):
		return "metadata.annotations", false
	}
	top := func(name string) bool {
		return name == "metadata" || name == "status" || name == "spec" || name == "kind" || name == "apiVersion"
	}
	if !sameWithout(a, b, top) {
		return "a field beside spec", false
	}
	return o.specDifference(templatePath(plural), section(a, "spec"), section(b, "spec"), "spec")
}

// specDifference goes down to the pod template, whose annotations are compared without marks.
func (o *Oracle) specDifference(path []string, a, b world.Object, at string) (string, bool) {
	if len(path) == 1 {
		marks := func(name string) bool { return isMark(name, o.options.Prefix) }
		rest := func(name string) bool { return name == "annotations" || name == "creationTimestamp" }
		switch {
		case !sameWithout(annotationsOf(a), annotationsOf(b), marks):
			return at + ".metadata.annotations", false
		case !sameWithout(section(a, "metadata"), section(b, "metadata"), rest):
			return at + ".metadata", false
		case !sameWithout(a, b, func(name string) bool { return name == "metadata" || name == "spec" }),
			!equal(plainSpec(section(a, "spec")), plainSpec(section(b, "spec"))):
			return at + ".spec", false
		}
		return "", true
	}
	next := path[1]
	if !sameWithout(a, b, func(name string) bool { return name == next }) {
		return at, false
	}
	return o.specDifference(path[1:], section(a, next), section(b, next), at+"."+next)
}

// judgeRejection is the law "unharmed" for answers: no write of a user fails because of the program.
func (o *Oracle) judgeRejection(r world.Reply) {
	if isWriteVerb(r.Call.Verb) && o.isRight(r) {
		o.count("right requests for a reload")
	}
	if r.Webhook != o.options.WebhookName || !isWriteVerb(r.Call.Verb) || r.Failure == nil && r.Status < 300 {
		return
	}
	message := ""
	if r.Failure != nil {
		message = r.Failure.Message
	}
	if strings.Contains(message, "failed calling webhook") && o.uncalled(r) {
		o.count("rejections excused: webhook away and failurePolicy Fail")
		return
	}
	how, excused := o.rejectedUnder(r)
	if excused {
		o.count("rejections excused: verified reload")
		return
	}
	subject := idOf(r.Call.Key).String()
	o.violate(r.At, broken{"unharmed", subject, "rejected" + how}, "the %s of %s at %s failed because of %s: status %d, %s",
		r.Call.Verb, r.Call.Client, o.when(r.Call.Arrived), r.Webhook, r.Status, message)
}

// rejectedUnder returns the circumstances in which a write was rejected. A new request for a reload that changes nothing else
// may be, unless it is right.
func (o *Oracle) rejectedUnder(r world.Reply) (how string, excused bool) {
	w := o.workloads[idOf(r.Call.Key)]
	unproven := r.Status == http.StatusConflict || r.Status == http.StatusServiceUnavailable
	switch {
	case !unproven || !o.asksForReload(r.Call, w):
		return "", false
	case !changesTemplate(r.Call, w) && o.isRight(r):
		return "/right", false
	case !changesTemplate(r.Call, w):
		return "", true
	case o.isBound(r.Call):
		return "/with-template/bound", false
	}
	return "/with-template", false
}

// reroute is how long calls may still go to a replica that does not answer any more, their timeout included.
const reroute = 15 * time.Second

// uncalled reports whether a fault may be why the API server could not call the webhook: one that lasts, or that was over not long ago.
func (o *Oracle) uncalled(r world.Reply) bool {
	t := &o.faults
	from := r.Call.Arrived
	if !t.working() || !t.alone.IsZero() && t.alone.Add(recovery).After(from) || o.slow.during(r.Call.Key.Namespace, from, r.At) {
		return true
	}
	return slices.ContainsFunc(t.spans, func(s *span) bool { return s.uncallsAt(from) })
}

// uncallsAt reports whether a fault may still keep the API server from calling the webhook at a moment.
func (s *span) uncallsAt(from time.Time) bool {
	switch {
	case s.deniesWorkloads(), s.kind == writesDenied && s.scope == eventsResource,
		slices.Contains([]string{"clock", "namespace-webhook", "watch-held", "writes-hang"}, s.kind):
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
	sent := section(body, templatePath(w.id.plural)...)
	return !covers(items(section(w.template, "spec"), "containers"), items(section(sent, "spec"), "containers"))
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

// asksForReload reports whether a request newly sets the annotation that asks for a verified reload. Where it cannot be read,
// it is taken to ask.
func (o *Oracle) asksForReload(call *world.Call, w *workload) bool {
	name := o.options.Prefix + requestMark
	if !bytes.Contains(call.Body, []byte(requestMark)) {
		return false
	}
	value, known := requested(call, name)
	if !known || value == nil {
		return !known
	}
	if w == nil {
		return true
	}
	before := valueOf(annotationsOf(w.object), name)
	return before == nil || *before != *value
}

// isBound reports whether a request for a reload says for which generation of the workload it was made.
func (o *Oracle) isBound(call *world.Call) bool {
	value, _ := requested(call, o.options.Prefix+requestMark)
	return value != nil && strings.Contains(*value, "@")
}

// requested returns the value that a request gives an annotation of the workload; nil if it gives none.
func requested(call *world.Call, name string) (value *string, known bool) {
	if strings.Contains(call.ContentType, "json-patch") {
		return requestedByOperations(call.Body, name)
	}
	body := world.Object{}
	if err := yaml.Unmarshal(call.Body, &body); err != nil {
		return nil, false
	}
	return valueOf(annotationsOf(body), name), true
}

func requestedByOperations(body []byte, name string) (value *string, known bool) {
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(body, &operations); err != nil {
		return nil, false
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	for _, op := range operations {
		if op.Op != "add" && op.Op != "replace" {
			continue
		}
		object, _ := op.Value.(map[string]any)
		switch op.Path {
		case "/metadata/annotations/" + escaped:
			if s, ok := op.Value.(string); ok {
				value = &s
			}
		case "/metadata/annotations":
			value = valueOf(object, name)
		case "/metadata":
			value = valueOf(section(object, "annotations"), name)
		case "":
			value = valueOf(annotationsOf(object), name)
		}
	}
	return value, true
}

func valueOf(annotations world.Object, name string) *string {
	if s, ok := annotations[name].(string); ok {
		return &s
	}
	return nil
}
