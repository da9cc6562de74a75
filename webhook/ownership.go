package webhook

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// disown returns the operations that take the ownership of a purged annotation of a workload out of its managedFields. The
// API server notes who owns a field before admission: an owner of a field that is never stored would be a conflict for the
// next client that asks for a reload by server-side apply. Entries that own nothing else go, the last one first, so that
// the indexes of the others hold.
func disown(raw map[string]any, annotation string) []jsonpatch.Operation {
	metadata, _ := raw["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	field := "f:" + annotation
	var ops []jsonpatch.Operation
	for i := len(entries) - 1; i >= 0; i-- {
		entry, _ := entries[i].(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)
		inMetadata, _ := fields["f:metadata"].(map[string]any)
		annotations, _ := inMetadata["f:annotations"].(map[string]any)
		if _, owned := annotations[field]; !owned {
			continue
		}
		path := fmt.Sprintf("/metadata/managedFields/%d", i)
		if !hasOneMember(fields, "f:metadata") || !hasOneMember(inMetadata, "f:annotations") || !hasOneMember(annotations, field) {
			path += stamp.Pointer("fieldsV1", "f:metadata", "f:annotations", field)
		}
		ops = append(ops, jsonpatch.NewOperation("remove", path, nil))
	}
	return ops
}

// hasOneMember reports whether a set of fields has at most one member, not counting the entry of the set itself.
func hasOneMember(fields map[string]any, member string) bool {
	for name := range fields {
		if name != member && name != "." {
			return false
		}
	}
	return true
}
