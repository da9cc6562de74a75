package stamp

import (
	"slices"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Remains are what this program and Stakater's Reloader have left on a workload.
type Remains struct {
	// OnTemplate names what is on the pod template: taking it away restarts the pods. OnWorkload names the others.
	OnTemplate, OnWorkload []string
	// OnControlled names what is on the pod template of a controlled workload. It is not taken away: the controller writes the template.
	OnControlled []string
}

// Empty reports whether nothing can be taken away.
func (r Remains) Empty() bool { return len(r.OnTemplate)+len(r.OnWorkload) == 0 }

// Remains returns what is left on a workload, what any strategy has written included. A template that cannot change any
// more is left out.
func (r Reader) Remains(o workload.Object) Remains {
	have := managedBy(o, r.Keys)
	var left Remains
	var template []string
	for _, s := range managedKeys {
		switch _, there := have[s.key]; {
		case !there:
		case !s.template:
			left.OnWorkload = append(left.OnWorkload, s.annotation(r.Keys))
		default:
			template = append(template, s.annotation(r.Keys))
		}
	}
	left.OnWorkload = append(left.OnWorkload, recreationKeys(o, r.Keys)...)
	template = append(template, strategy.Read(o.Template()).Edited(strategy.Fields{})...)
	switch {
	case changeable(o):
		left.OnTemplate = template
	case !o.Kind.CreateOnly:
		left.OnControlled = template
	}
	return left
}

// recreationKeys are the annotations of a Job about its being created again, which the webhook does not manage.
func recreationKeys(o workload.Object, keys annotation.Keys) []string {
	return slices.DeleteFunc([]string{keys.RecreatedFrom, keys.RecreationCanceled}, func(key string) bool {
		_, there := o.Annotations()[key]
		return !there
	})
}

func changeable(o workload.Object) bool { return !o.Kind.CreateOnly && !o.Controlled() }

// Clean returns the JSON patch that takes the remains of a workload away, those on the template only if it may restart
// the pods. The workload must bear a label that excludes it. The patch has a request in it, without which the webhook
// would put all of it back; where no webhook answers, the request is stored.
func (r Reader) Clean(o workload.Object, restart bool) []jsonpatch.Operation {
	r.Strategy = annotation.EnvVars // it reads what any strategy has written
	want := Managed{Dummy: digest.Bind(digest.Clean, o.Generation())}
	if !restart || !changeable(o) {
		have := managedBy(o, r.Keys)
		have.setFields(strategy.Read(o.Template()))
		want.put(have, stampKeys()...)
	}
	ops := r.Operations(o, want)
	for _, key := range recreationKeys(o, r.Keys) {
		ops = append(ops, jsonpatch.NewOperation("remove", Pointer("metadata", "annotations", key), nil))
	}
	return ops
}
