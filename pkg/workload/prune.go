package workload

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Prune returns a copy of a raw workload that holds what this package reads and nothing else: identity, labels, the
// annotations that keep says, the references of the pod spec, and what Pending looks at. Caches store that. The sizes of
// the annotations that go are noted, since they tell how much room is left.
func (o Object) Prune(keep func(annotation string) bool) map[string]any {
	pruned := map[string]any{"apiVersion": o.Raw["apiVersion"], "kind": o.Raw["kind"]}
	if metadata, ok := o.Raw["metadata"].(map[string]any); ok {
		pruned["metadata"] = pruneMetadata(metadata, keep)
	}
	pruned["spec"] = pruneSpec(o.Raw["spec"])
	if template, ok := o.template(); ok {
		put(pruned, pruneTemplate(template, keep), o.Kind.Template)
	}
	onWorkload, onTemplate := o.AnnotationSizes()
	small := Object{Kind: o.Kind, Raw: pruned}
	keptOnWorkload, keptOnTemplate := small.AnnotationSizes()
	if onWorkload != keptOnWorkload || onTemplate != keptOnTemplate {
		pruned[prunedSizes] = []any{int64(onWorkload - keptOnWorkload), int64(onTemplate - keptOnTemplate)}
	}
	return pruned
}

// put sets a field without copying the value. Where the path leads through something that is no map it is replaced: the
// template was found under it, so only what Prune itself kept can be in the way.
func put(at map[string]any, value any, path []string) {
	for _, field := range path[:len(path)-1] {
		next, ok := at[field].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[field] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
}

// prunedSizes is the member of a pruned object that holds the bytes of the annotations that went: of the workload's and
// of the template's. No object of the API has it.
const prunedSizes = "prunedAnnotationBytes"

// AnnotationSizes returns the bytes that the keys and values of the annotations take, as the API server counts them: of
// the workload and of its template, pruned ones included.
func (o Object) AnnotationSizes() (onWorkload, onTemplate int) {
	if gone, ok := o.Raw[prunedSizes].([]any); ok && len(gone) == 2 {
		onWorkload, onTemplate = int(number(gone[0])), int(number(gone[1]))
	}
	for key, value := range o.Annotations() {
		onWorkload += len(key) + len(value)
	}
	for key, value := range o.TemplateAnnotations() {
		onTemplate += len(key) + len(value)
	}
	return onWorkload, onTemplate
}

func pruneMetadata(metadata map[string]any, keep func(string) bool) map[string]any {
	small := map[string]any{}
	for _, field := range []string{
		"name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp", "creationTimestamp",
	} {
		if v, ok := metadata[field]; ok {
			small[field] = v
		}
	}
	if labels, ok := metadata["labels"].(map[string]any); ok {
		small["labels"] = maps.Clone(labels)
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		small["annotations"] = pruneAnnotations(annotations, keep)
	}
	return small
}

// pruneSpec keeps what Pending looks at.
func pruneSpec(spec any) map[string]any {
	all, _ := spec.(map[string]any)
	small := map[string]any{}
	for _, field := range []string{"paused", "updateStrategy"} {
		if v, ok := all[field]; ok {
			small[field] = runtime.DeepCopyJSONValue(v)
		}
	}
	return small
}

func pruneTemplate(template map[string]any, keep func(string) bool) map[string]any {
	small := map[string]any{}
	if metadata, ok := template["metadata"].(map[string]any); ok {
		kept := map[string]any{}
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			kept["annotations"] = pruneAnnotations(annotations, keep)
		}
		small["metadata"] = kept
	}
	if podSpec, ok := template["spec"].(map[string]any); ok {
		small["spec"] = reference.PruneRaw(podSpec)
	}
	return small
}

// pruneAnnotations returns the annotations to keep. An empty map stays, so that what is computed from the pruned object
// still knows that there is one.
func pruneAnnotations(all map[string]any, keep func(string) bool) map[string]any {
	small := map[string]any{}
	for key, value := range all {
		if keep(key) {
			small[key] = value
		}
	}
	return small
}
