package referent

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watch/jsonpath"
)

// edges compiles the edges of a resource, and enters the referrers at the resources that refer.
func (c *compiler) edges(path *field.Path, r *Resource, d Definition) {
	for i, definition := range d.Refs {
		at := path.Child("refs").Index(i)
		if to := c.end(at.Child("to"), definition.Resource); to != nil {
			r.refs = append(r.refs, c.edge(at, &edge{from: r, to: to}, definition))
		}
	}
	for i, definition := range d.Referrers {
		at := path.Child("referrers").Index(i)
		if definition.Optional {
			c.add(field.Forbidden(at.Child("optional"), "an object that does not exist has no references; leave it out"))
		}
		from := c.end(at.Child("from"), definition.Resource)
		if from == nil {
			continue
		}
		if from.builtin {
			c.invalid(at.Child("from"), from.ID, "ConfigMaps and Secrets do not refer to other objects")
			continue
		}
		edge := c.edge(at, &edge{from: from, to: r, inverse: true}, definition)
		r.referrers = append(r.referrers, edge)
		from.points = append(from.points, edge)
	}
}

// identify has the identity kept of what a resource with crc32 refers to. A digest under HMAC in such a checksum would
// change when the digest key is rotated.
func (c *compiler) identify(path *field.Path, r *Resource) {
	if !r.CRC32 {
		return
	}
	for _, child := range r.children() {
		child.identified = true
		if !child.builtin && !child.CRC32 && !child.Published {
			c.invalid(path.Child("algorithm"), AlgorithmCRC32, child.at+" is below it: set algorithm: crc32 or checksum: published there, too")
		}
	}
}

// end returns the resource at the other end of an edge.
func (c *compiler) end(path *field.Path, id string) *Resource {
	found := c.byID[id]
	switch {
	case id == "":
		c.add(field.Required(path, "the id of a resource, or configmaps or secrets"))
	case found == nil:
		c.invalid(path, id, "no resource has this id")
	}
	return found
}

// edge compiles the expressions of an edge whose ends are known.
func (c *compiler) edge(path *field.Path, e *edge, d EdgeDefinition) *edge {
	e.at, e.kind, e.optional, e.namespaces = path.String(), d.Kind, d.Optional, slices.Clone(d.Namespaces)
	names, ok := c.expression(path.Child("name"), d.Name)
	if !ok {
		return e
	}
	parent, last, noField := names.Split()
	if e.base, e.name = parent, last; noField > 0 {
		e.base = names
		if d.Kind != "" {
			c.add(field.Forbidden(path.Child("kind"), "it has no effect: there is no field beside the names"))
		}
	}
	if d.Namespace != "" {
		e.namespace = c.beside(path.Child("namespace"), names, d.Namespace)
	}
	c.checkNamespaces(path, e)
	return e
}

// beside compiles the expression of a namespace: it must be a field of the same mapping as the name, so that each name
// has its own.
func (c *compiler) beside(path *field.Path, names jsonpath.Path, expression string) string {
	namespaces, ok := c.expression(path, expression)
	if !ok {
		return ""
	}
	parent, _, noName := names.Split()
	other, last, noNamespace := namespaces.Split()
	if noName > 0 || noNamespace > 0 || !parent.Equal(other) {
		c.invalid(path, expression, fmt.Sprintf("want a field beside the name, which is at %s", reference.Quote(names.String())))
		return ""
	}
	return last
}

// checkNamespaces reports what can never be allowed, or has no effect.
func (c *compiler) checkNamespaces(path *field.Path, e *edge) {
	c.checkNames(path.Child("namespaces"), e.namespaces)
	intoNamespace := e.from.ClusterScoped && !e.to.ClusterScoped
	switch {
	case e.to.ClusterScoped && e.namespace != "":
		c.add(field.Forbidden(path.Child("namespace"), reference.Quote(e.to.String())+" have no namespace; leave it out"))
	case intoNamespace && e.namespace == "":
		c.add(field.Required(path.Child("namespace"), reference.Quote(e.from.String())+" have no namespace, but "+reference.Quote(e.to.String())+" do"))
	}
	crosses := e.namespace != "" || e.inverse && e.to.ClusterScoped && !e.from.ClusterScoped
	if len(e.namespaces) > 0 && !crosses {
		c.add(field.Forbidden(path.Child("namespaces"), "it has no effect: the reference names no namespace"))
	}
}

func (c *compiler) checkNames(path *field.Path, namespaces []string) {
	for i, namespace := range namespaces {
		if namespace != "*" && len(validation.IsDNS1123Label(namespace)) > 0 {
			c.invalid(path.Index(i), namespace, "it is not the name of a namespace, nor \"*\"")
		}
	}
}

// expression compiles a JSONPath.
func (c *compiler) expression(path *field.Path, text string) (jsonpath.Path, bool) {
	if text == "" {
		c.add(field.Required(path, "a JSONPath, e.g. spec.tls.certificateRef.name"))
		return jsonpath.Path{}, false
	}
	compiled, fault := jsonpath.Parse(text)
	if fault == nil {
		return compiled, true
	}
	reason := fault.Reason
	if fault.Position > 0 {
		reason = fmt.Sprintf("byte %d: %s", fault.Position, reason)
	}
	c.invalid(path, text, reason)
	return jsonpath.Path{}, false
}
