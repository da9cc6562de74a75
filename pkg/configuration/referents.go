package configuration

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// defaultReferentAnnotation stands in for the key under the prefix that is configured: any key can be written.
const defaultReferentAnnotation = "pod-reloader.cs.sap.com/referent-checksum"

// referents reads the section of that name; the rules are those of package referent. Where the text has faults of form,
// its meaning is not checked: it would be reported twice.
func (r *reader) referents(path *field.Path, value any) []referent.Definition {
	before := len(r.faults)
	var definitions []referent.Definition
	for i, item := range r.list(path, value) {
		definitions = append(definitions, r.referent(path.Index(i), item))
	}
	if len(r.faults) > before {
		return nil
	}
	_, faults := referent.Compile(path, definitions, defaultReferentAnnotation)
	r.faults = append(r.faults, faults...)
	return definitions
}

func (r *reader) referent(path *field.Path, value any) referent.Definition {
	fields := r.mapping(path, value)
	r.known(path, fields, "id", "gvr", "scope", "ready", "self", "refs", "referrers", "checksum", "algorithm", "publish", "annotation", "workloads")
	return referent.Definition{
		ID:            r.optional(path.Child("id"), fields["id"]),
		GVR:           r.gvr(path.Child("gvr"), fields["gvr"]),
		ClusterScoped: r.choice(path.Child("scope"), fields["scope"], "Namespaced", "Cluster") == "Cluster",
		Ready:         r.ready(path.Child("ready"), fields["ready"]),
		Self:          r.self(path.Child("self"), fields["self"]),
		Refs:          r.edges(path.Child("refs"), fields["refs"], "to"),
		Referrers:     r.edges(path.Child("referrers"), fields["referrers"], "from"),
		Checksum:      r.optional(path.Child("checksum"), fields["checksum"]),
		Algorithm:     r.optional(path.Child("algorithm"), fields["algorithm"]),
		Publish:       r.boolean(path.Child("publish"), fields["publish"]),
		Annotation:    r.optional(path.Child("annotation"), fields["annotation"]),
		Workloads:     r.workloads(path.Child("workloads"), fields["workloads"]),
	}
}

func (r *reader) workloads(path *field.Path, value any) referent.WorkloadsDefinition {
	fields := r.optionalMapping(path, value)
	r.known(path, fields, "ownedBy", "ownerKind", "selector")
	return referent.WorkloadsDefinition{
		OwnedBy:   r.boolean(path.Child("ownedBy"), fields["ownedBy"]),
		OwnerKind: r.optional(path.Child("ownerKind"), fields["ownerKind"]),
		Selector:  r.optional(path.Child("selector"), fields["selector"]),
	}
}

func (r *reader) gvr(path *field.Path, value any) schema.GroupVersionResource {
	fields := r.optionalMapping(path, value)
	r.known(path, fields, "group", "version", "resource")
	return schema.GroupVersionResource{
		Group:    r.optional(path.Child("group"), fields["group"]),
		Version:  r.optional(path.Child("version"), fields["version"]),
		Resource: r.optional(path.Child("resource"), fields["resource"]),
	}
}

// edges reads references; end is the field that names the other resource.
func (r *reader) edges(path *field.Path, value any, end string) []referent.EdgeDefinition {
	var edges []referent.EdgeDefinition
	for i, item := range r.list(path, value) {
		path := path.Index(i)
		fields := r.mapping(path, item)
		r.known(path, fields, end, "name", "namespace", "kind", "optional", "namespaces")
		edges = append(edges, referent.EdgeDefinition{
			Resource:   r.optional(path.Child(end), fields[end]),
			Name:       r.optional(path.Child("name"), fields["name"]),
			Namespace:  r.optional(path.Child("namespace"), fields["namespace"]),
			Kind:       r.optional(path.Child("kind"), fields["kind"]),
			Optional:   r.boolean(path.Child("optional"), fields["optional"]),
			Namespaces: r.texts(path.Child("namespaces"), fields["namespaces"]),
		})
	}
	return edges
}

func (r *reader) ready(path *field.Path, value any) referent.ReadyDefinition {
	fields := r.optionalMapping(path, value)
	r.known(path, fields, "observedGeneration", "conditions")
	ready := referent.ReadyDefinition{ObservedGeneration: r.optional(path.Child("observedGeneration"), fields["observedGeneration"])}
	for i, item := range r.list(path.Child("conditions"), fields["conditions"]) {
		path := path.Child("conditions").Index(i)
		condition := r.mapping(path, item)
		r.known(path, condition, "type", "status", "path")
		ready.Conditions = append(ready.Conditions, referent.ConditionDefinition{
			Type:   r.optional(path.Child("type"), condition["type"]),
			Status: r.optional(path.Child("status"), condition["status"]),
			Path:   r.optional(path.Child("path"), condition["path"]),
		})
	}
	return ready
}

// self reads a rule, or a mapping with fields.
func (r *reader) self(path *field.Path, value any) referent.SelfDefinition {
	fields, ok := value.(map[string]any)
	if !ok {
		return referent.SelfDefinition{Rule: r.optional(path, value)}
	}
	r.known(path, fields, "fields")
	found := r.texts(path.Child("fields"), fields["fields"])
	if len(found) == 0 {
		r.add(field.Required(path.Child("fields"), "JSONPaths of the fields that count; write self: none where none does"))
	}
	return referent.SelfDefinition{Fields: found}
}
