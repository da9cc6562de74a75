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

// judgeTooLong is the law "unharmed" for the size of annotations: what a user writes is not refused because of what the
// program keeps beside it, or writes in the same request.
func (o *Oracle) judgeTooLong(r world.Reply) {
	if r.Status != http.StatusUnprocessableEntity || r.Failure == nil || !strings.Contains(r.Failure.Message, "annotations: Too long") {
		return
	}
	w := o.workloads[idOf(r.Call.Key)]
	if w == nil || !w.eligible || !o.couldSee(w, r) {
		return
	}
	wanted, known := o.wanted(w, r.Call)
	if !known {
		return
	}
	o.count("writes with long annotations judged")
	path := templatePath(w.id.plural)
	size, ofTemplate := o.sizeOfOthers(annotationsOf(wanted)), o.sizeOfOthers(annotationsOf(section(wanted, path...)))
	if size <= annotationLimit && ofTemplate <= annotationLimit {
		o.violate(r.At, broken{"unharmed", w.id.String(), "too-long"},
			"the %s of %s at %s was refused because annotations are too long, but the user's own have %d bytes, those of the template %d",
			r.Call.Verb, r.Call.Client, o.when(r.Call.Arrived), size, ofTemplate)
	}
}

// couldSee reports whether the webhook surely saw a request that was refused.
func (o *Oracle) couldSee(w *workload, r world.Reply) bool {
	return o.options.Webhook && o.healthy(w, r.Call.Arrived) && !o.slow.during(w.id.namespace, r.Call.Arrived, r.At)
}

// sizeOfOthers returns the size of the annotations that are not the program's.
func (o *Oracle) sizeOfOthers(annotations world.Object) int {
	size := 0
	for name, value := range annotations {
		own := !isMark(name, o.options.Prefix) || name == o.options.Prefix+referentList
		if text, ok := value.(string); ok && own {
			size += len(name) + len(text)
		}
	}
	return size
}

// stampMark is the annotation that restarts pods, stampValue the size of its value.
const (
	stampMark  = "config-hash"
	stampValue = 64
)

// full reports whether the users' annotations of the pod template leave no room for the one that restarts the pods: the program must
// not make the workload invalid.
func (o *Oracle) full(w *workload) bool {
	return o.sizeOfOthers(annotationsOf(w.template)) > annotationLimit-len(o.options.Prefix+stampMark)-stampValue
}

// warnEvery is how long the program may wait with a Warning Event after the last one of the same reason.
const warnEvery = time.Minute

// saysFull reports whether a reload is due that is not possible as the pod template is full, and a Warning Event says so.
func (o *Oracle) saysFull(w *workload) bool {
	due := w.due.since
	if due.IsZero() || !o.full(w) {
		return false
	}
	allowed, written := o.eventsAllowedSince()
	return o.events.failed[w.uid].After(due.Add(-warnEvery)) || !written || allowed.After(due)
}

// sizeOfLeftovers returns the size of the program's annotations that an object has and its owner lacks, or has with another
// value. The Deployment controller copies annotations to the ReplicaSet and never removes one there, so that the program
// cannot take them back.
func (o *Oracle) sizeOfLeftovers(annotations, ofOwner world.Object) int {
	size := 0
	for name, value := range annotations {
		if text, ok := value.(string); ok && isMark(name, o.options.Prefix) && ofOwner[name] != value {
			size += len(name) + len(text)
		}
	}
	return size
}

// wanted returns what a request makes of a workload as far as annotations are concerned, if it is a PUT or a merge.
func (o *Oracle) wanted(w *workload, call *world.Call) (world.Object, bool) {
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

// Refused takes note of an object that a controller wanted to store and that the API server refused as invalid. It is the law
// "unharmed" for what controllers copy: a rollout does not stop because of the program's annotations.
func (o *Oracle) Refused(at time.Time, key world.Key, object world.Object) {
	o.advance(at)
	o.count("writes of controllers refused")
	_, owner := controllerOf(object)
	w := o.byUID[owner]
	if w == nil || !w.eligible || !o.healthy(w, at) {
		return
	}
	annotations := annotationsOf(object)
	if size := o.sizeOfOthers(annotations); size+o.sizeOfLeftovers(annotations, annotationsOf(w.object)) <= annotationLimit {
		o.violate(at, broken{"unharmed", w.id.String(), "rollout"},
			"%s was refused at %s because its annotations are too long, but without those of the program they have %d bytes", idOf(key), o.when(at), size)
	}
}
