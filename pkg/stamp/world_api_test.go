package stamp

import (
	"cmp"
	"reflect"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// create stores a new workload.
func (w *world) create(raw map[string]any) *Rejection {
	w.stored = nil
	return w.store(raw)
}

// write updates the workload.
func (w *world) write(change func(raw map[string]any)) *Rejection {
	raw := clone(w.t, w.stored)
	change(raw)
	return w.store(raw)
}

// store is the API server: admission, then what is stored.
func (w *world) store(raw map[string]any) *Rejection {
	raw = clone(w.t, raw)
	metadata := raw["metadata"].(map[string]any)
	for _, field := range []string{"uid", "generation"} {
		delete(metadata, field)
		if w.stored != nil {
			metadata[field] = w.stored["metadata"].(map[string]any)[field]
		}
	}
	if !w.away {
		raw, rejection := w.admitByAll(raw)
		if rejection != nil {
			return rejection
		}
		if w.other != nil {
			touched := clone(w.t, raw)
			w.other(touched)
			if !reflect.DeepEqual(raw, touched) {
				if raw, rejection = w.admit(touched); rejection != nil {
					return rejection
				}
			}
		}
		w.commit(raw)
		return nil
	}
	w.commit(raw)
	return nil
}

// commit stores a version.
func (w *world) commit(raw map[string]any) {
	old := w.stored
	metadata := raw["metadata"].(map[string]any)
	if old == nil {
		metadata["uid"], metadata["generation"] = "uid", float64(1)
	} else {
		annotated := w.kind.Kind == "Deployment" && !reflect.DeepEqual(annotationsOf(old), annotationsOf(raw))
		if annotated || !reflect.DeepEqual(old["spec"], raw["spec"]) {
			metadata["generation"] = old["metadata"].(map[string]any)["generation"].(float64) + 1
		}
		before := workload.Object{Kind: w.kind, Raw: old}
		if !before.SameTemplate(workload.Object{Kind: w.kind, Raw: raw}) {
			w.restarts++
		}
	}
	w.stored = raw
}

// annotationsOf returns the annotations of a workload. Writing them raises a Deployment's generation, but that of no
// other kind.
func annotationsOf(raw map[string]any) any {
	annotations, _ := raw["metadata"].(map[string]any)["annotations"].(map[string]any)
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// admitByAll calls the webhooks of all installations, and again each after whose call another one has changed the object.
func (w *world) admitByAll(raw map[string]any) (map[string]any, *Rejection) {
	if w.webhooks == nil {
		return w.admit(raw)
	}
	ours := w.reader
	defer func() { w.reader = ours }()
	left := make([]map[string]any, len(w.webhooks))
	for range 2 {
		for i, reader := range w.webhooks {
			if reflect.DeepEqual(left[i], raw) {
				continue
			}
			var rejection *Rejection
			w.reader = reader
			if raw, rejection = w.admit(raw); rejection != nil {
				return nil, rejection
			}
			left[i] = raw
		}
	}
	return raw, nil
}

// admit is one pass of our webhook.
func (w *world) admit(raw map[string]any) (map[string]any, *Rejection) {
	current := workload.Object{Kind: w.kind, Raw: raw}
	var old *workload.Object
	if w.stored != nil {
		old = &workload.Object{Kind: w.kind, Raw: w.stored}
	}
	before := clone(w.t, raw)
	req, _ := w.reader.NewWrite(old, current)
	plan := Choose(req)
	inputs := w.inputs(plan.Reads)
	inputs.Err = cmp.Or(inputs.Err, req.New.Unresolved)
	w.result = plan.Apply(req, inputs)
	require.Equal(w.t, before, raw, "deciding must not change the object")
	if w.result.Reject != nil {
		return nil, w.result.Reject
	}
	ops := w.reader.Operations(current, w.result.Managed)
	patched := patch(w.t, raw, ops)
	require.Equal(w.t, w.stripped(before), w.stripped(patched), "only our annotations may be touched")
	require.Equal(w.t, w.result.Managed, w.managedOf(patched), "the patch must bring what was decided")
	return patched, nil
}
