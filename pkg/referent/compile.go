package referent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Compile checks definitions and compiles their expressions. The faults have paths below path, which is that of the list;
// with any of them there is no Schema. annotation is the default of Definition.Annotation.
func Compile(path *field.Path, definitions []Definition, annotation string) (*Schema, field.ErrorList) {
	if len(definitions) > MaxResources {
		return nil, field.ErrorList{field.TooMany(path, len(definitions), MaxResources)}
	}
	c := &compiler{byID: map[string]*Resource{}, annotation: annotation}
	compiled := &Schema{byName: map[schema.GroupResource]*Resource{}}
	for _, kind := range reference.Kinds() {
		gvk, _ := kind.GroupVersionKind()
		builtin := &Resource{ID: kind.Resource(), GVR: gvk.GroupVersion().WithResource(kind.Resource()), builtin: true}
		c.byID[builtin.ID], compiled.byName[builtin.GVR.GroupResource()] = builtin, builtin
	}
	for i, definition := range definitions {
		resource := c.resource(path.Index(i), definition)
		compiled.resources = append(compiled.resources, resource)
		c.unique(path.Index(i), resource, compiled.byName)
	}
	for i, definition := range definitions {
		c.edges(path.Index(i), compiled.resources[i], definition)
	}
	for i, resource := range compiled.resources {
		c.identify(path.Index(i), resource)
	}
	c.checkDepth(path, compiled.resources)
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return compiled, nil
}

// compiler gathers what is wrong with definitions.
type compiler struct {
	byID       map[string]*Resource
	annotation string
	faults     field.ErrorList
}

func (c *compiler) add(fault *field.Error) { c.faults = append(c.faults, fault) }

func (c *compiler) invalid(path *field.Path, value, reason string) {
	c.add(field.Invalid(path, reference.Shorten(value), reason))
}

// resource compiles a definition without its edges.
func (c *compiler) resource(path *field.Path, d Definition) *Resource {
	r := &Resource{
		ID: d.ID, GVR: d.GVR, ClusterScoped: d.ClusterScoped, at: path.String(),
		Publish: d.Publish, Annotation: d.Annotation,
		workloads: c.workloadsRule(path.Child("workloads"), d.Workloads),
		ready:     c.readyRule(path.Child("ready"), d.Ready),
		self:      c.selfRule(path.Child("self"), d.Self),
	}
	c.checkGVR(path.Child("gvr"), d.GVR)
	c.checkChecksum(path, d, r)
	return r
}

func (c *compiler) checkGVR(path *field.Path, gvr schema.GroupVersionResource) {
	if gvr.Group == "" {
		c.add(field.Required(path.Child("group"), "the API group, e.g. cert-manager.io; ConfigMaps and Secrets are built in"))
	} else if problems := validation.IsDNS1123Subdomain(gvr.Group); len(problems) > 0 {
		c.invalid(path.Child("group"), gvr.Group, "it is not an API group")
	}
	for _, part := range []struct{ field, value, example string }{
		{"version", gvr.Version, "v1"}, {"resource", gvr.Resource, "certificates"},
	} {
		if part.value == "" {
			c.add(field.Required(path.Child(part.field), "e.g. "+part.example))
		} else if problems := validation.IsDNS1035Label(part.value); len(problems) > 0 {
			c.invalid(path.Child(part.field), part.value, "it is not of the form of "+part.example)
		}
	}
}

// unique reports a second resource of the same ID or name. A resource in two versions would have each object twice.
func (c *compiler) unique(path *field.Path, r *Resource, byName map[schema.GroupResource]*Resource) {
	switch {
	case r.ID == "":
		c.add(field.Required(path.Child("id"), "a name for references to it, e.g. certificates"))
	case len(validation.IsDNS1123Label(r.ID)) > 0:
		c.invalid(path.Child("id"), r.ID, "want lower-case letters, digits and '-'")
	case c.byID[r.ID] == nil:
		c.byID[r.ID] = r
	case c.byID[r.ID].builtin:
		c.invalid(path.Child("id"), r.ID, "this id is built in; choose another one")
	default:
		c.invalid(path.Child("id"), r.ID, c.byID[r.ID].at+" has this id already")
	}
	if other := byName[r.GVR.GroupResource()]; other != nil && r.GVR.Group != "" {
		c.invalid(path.Child("gvr"), r.String(), other.at+" is this resource already, perhaps in another version; leave one out")
		return
	}
	byName[r.GVR.GroupResource()] = r
}

// checkChecksum reads where the digest comes from and where it is written.
func (c *compiler) checkChecksum(path *field.Path, d Definition, r *Resource) {
	switch d.Checksum {
	case "", ChecksumComputed:
	case ChecksumPublished:
		r.Published = true
		for _, conflict := range []struct {
			field string
			set   bool
		}{
			{"publish", d.Publish},
			{"algorithm", d.Algorithm != ""},
			{"refs", len(d.Refs) > 0},
			{"referrers", len(d.Referrers) > 0},
		} {
			if conflict.set {
				c.add(field.Forbidden(path.Child(conflict.field), "it has no effect with checksum: published; leave one of them out"))
			}
		}
	default:
		c.add(field.NotSupported(path.Child("checksum"), reference.Shorten(d.Checksum), []string{ChecksumComputed, ChecksumPublished}))
	}
	switch d.Algorithm {
	case "", AlgorithmHMAC:
	case AlgorithmCRC32:
		r.CRC32 = true
	default:
		c.add(field.NotSupported(path.Child("algorithm"), reference.Shorten(d.Algorithm), []string{AlgorithmHMAC, AlgorithmCRC32}))
	}
	c.checkAnnotation(path.Child("annotation"), r)
}

func (c *compiler) checkAnnotation(path *field.Path, r *Resource) {
	switch {
	case r.Annotation == "":
		r.Annotation = c.annotation
	case !r.Publish && !r.Published:
		c.add(field.Forbidden(path, "it has no effect without publish: true or checksum: published"))
	default:
		if problems := validation.IsQualifiedName(r.Annotation); len(problems) > 0 {
			c.invalid(path, r.Annotation, fmt.Sprintf("it is not the key of an annotation, such as %s", c.annotation))
		}
	}
}
