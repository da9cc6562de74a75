package oracle

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// annotationLimit is how many bytes the keys and values of the annotations of one object may have
// (k8s.io/apimachinery/pkg/api/validation.TotalAnnotationSizeLimitB).
const annotationLimit = 256 << 10

// sizeLaw is the law "unharmed" for the size of annotations.
type sizeLaw struct {
	*ledger
	passive
}

// reply is the law "unharmed" for the size of annotations: what a user writes is not refused because of what the
// program keeps beside it, or writes in the same request.
func (l *sizeLaw) reply(r world.Reply) {
	if l.isProgram(r.Call) || r.Status != http.StatusUnprocessableEntity || r.Failure == nil ||
		!strings.Contains(r.Failure.Message, "annotations: Too long") {
		return
	}
	w := l.workloads[idOf(r.Call.Key)]
	if w == nil || !w.eligible || !l.couldSee(w, r) {
		return
	}
	wanted, known := applyRequest(w, r.Call)
	if !known {
		return
	}
	l.count("writes with long annotations judged")
	path := world.TemplatePath(w.id.plural)
	size, ofTemplate := l.sizeOfOthers(world.Annotations(wanted)), l.sizeOfOthers(world.Annotations(world.Section(wanted, path...)))
	if size <= annotationLimit && ofTemplate <= annotationLimit {
		l.violate(r.At, broken{"unharmed", w.id.String(), "too-long"},
			"the %s of %s at %s was refused because annotations are too long, but the user's own have %d bytes, those of the template %d",
			r.Call.Verb, r.Call.Client, l.when(r.Call.Arrived), size, ofTemplate)
	}
}

// stampAnnotation is the annotation that restarts pods, stampValue the size of its value.
const (
	stampAnnotation = "config-hash"
	stampValue      = 64
)

// warnEvery is how long the program may wait with a Warning Event after the last one of the same reason.
const warnEvery = time.Minute

// applyRequest returns what a request makes of a workload as far as annotations are concerned, if it is a PUT or a merge.
func applyRequest(w *workload, call *world.Call) (world.Object, bool) {
	merge := call.Verb == "patch" && strings.Contains(call.ContentType, "merge-patch")
	if call.Verb != "update" && !merge {
		return nil, false
	}
	body := world.Object{}
	if json.Unmarshal(call.Body, &body) != nil {
		return nil, false
	}
	if !merge {
		return body, true
	}
	return mergedObject(w.object, body), true
}

// mergedObject is a JSON merge patch. A strategic one does the same to annotations.
func mergedObject(into, patch world.Object) world.Object {
	merged := make(world.Object, len(into)+len(patch))
	for name, value := range into {
		merged[name] = value
	}
	for name, value := range patch {
		change, nested := value.(map[string]any)
		switch {
		case value == nil:
			delete(merged, name)
		case nested:
			before, _ := merged[name].(map[string]any)
			merged[name] = mergedObject(before, change)
		default:
			merged[name] = value
		}
	}
	return merged
}

// refused judges an object that a controller wanted to store and that the API server refused as invalid. It is the law
// "unharmed" for what controllers copy: a rollout does not stop because of the program's annotations, those of the present.
func (l *sizeLaw) refused(at time.Time, key world.Key, object world.Object) {
	l.count("writes of controllers refused")
	_, owner := controllerOf(object)
	w := l.byUID[owner]
	if w == nil || !w.eligible || !l.healthy(w, at) {
		return
	}
	annotations := world.Annotations(object)
	present := sizeOf(annotations) - l.sizeOfLeftovers(annotations, world.Annotations(w.object))
	if size := l.sizeOfOthers(annotations); size <= annotationLimit && present > annotationLimit {
		l.violate(at, broken{"unharmed", w.id.String(), "rollout"},
			"%s was refused at %s because its annotations are too long, but without those of the program they have %d bytes",
			idOf(key), l.when(at), size)
	}
}
