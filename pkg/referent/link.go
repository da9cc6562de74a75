package referent

import (
	"fmt"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// link is a reference of one object.
type link struct {
	to   Key
	edge *edge
}

// linkReader reads the references of one object into its facts.
type linkReader struct {
	key   Key
	facts *facts
	count int
	// added are the links of the facts.
	added map[link]struct{}
}

// follow reads the references of an edge, in the order of the document. A name that is empty or null is no reference.
func (l *linkReader) follow(e *edge, object map[string]any) {
	e.base.Find(object, func(value any) {
		name, namespace := e.target(value)
		if name == nil || name == "" || !e.chooses(value) {
			return
		}
		if l.count++; l.count > MaxReferences {
			l.hold(TooMany, fmt.Sprintf("more than %d references", MaxReferences))
			return
		}
		to, ok := l.resolve(e, name, namespace)
		switch {
		case !ok:
			l.refuse(e, Invalid, fmt.Sprintf("%s: %s names no object", e.at, quote(name, namespace)))
		case !e.allows(l.key.Namespace, to.Namespace):
			l.refuse(e, Denied, fmt.Sprintf("%s.namespaces does not allow %s", e.at, crossing(e, l.key, to)))
		default:
			l.add(e, to)
		}
	})
}

// target returns the name, and the namespace, in what the base of the edge leads to.
func (e *edge) target(value any) (name, namespace any) {
	if e.name == "" {
		return value, nil
	}
	fields, _ := value.(map[string]any)
	if e.namespace != "" {
		namespace = fields[e.namespace]
	}
	return fields[e.name], namespace
}

// chooses reports whether the reference is to the kind of the edge. Without a field kind it is, so that no dependency is
// missed.
func (e *edge) chooses(value any) bool {
	fields, _ := value.(map[string]any)
	kind := fields["kind"]
	return e.kind == "" || kind == nil || kind == "" || kind == e.kind
}

// resolve is the object that is referred to; false if there can be none of the name.
func (l *linkReader) resolve(e *edge, name, namespace any) (Key, bool) {
	text, ok := name.(string)
	of := l.key.Namespace
	if namespace != nil && namespace != "" {
		var isText bool
		of, isText = namespace.(string)
		ok = ok && isText && reference.IsName(of)
	}
	return e.to.Key(of, text), ok && reference.IsName(text)
}

func (l *linkReader) add(e *edge, to Key) {
	links := &l.facts.children
	if e.inverse {
		links = &l.facts.parents
	}
	one := link{to: to, edge: e}
	if _, ok := l.added[one]; !ok {
		l.added[one] = struct{}{}
		*links = append(*links, one)
	}
}

// refuse reports a reference that cannot be followed. It holds the object that refers; where that is the child, the
// parent does not depend on it: else anyone who may create a child could hold the parents of others.
func (l *linkReader) refuse(e *edge, reason Reason, detail string) {
	if !e.inverse {
		l.hold(reason, detail)
	} else if !slices.Contains(l.facts.problems, detail) && len(l.facts.problems) < maxProblems {
		l.facts.problems = append(l.facts.problems, detail)
	}
}

// maxProblems is how many Problems an object has at most.
const maxProblems = 5

// hold keeps the first reason: one is enough, and it is the same for every order of evaluation.
func (l *linkReader) hold(reason Reason, detail string) {
	if l.facts.fault == nil {
		l.facts.fault = &Hold{Reason: reason, Node: l.key, Detail: detail}
	}
}

// crossing says which way a reference goes that is not allowed.
func crossing(e *edge, from, to Key) string {
	if e.inverse {
		return fmt.Sprintf("%s to be referred to by %s", to.In(from.Namespace), from.In(to.Namespace))
	}
	return "the reference to " + to.In(from.Namespace)
}

// quote makes the values of a reference fit for a message.
func quote(name, namespace any) string {
	text := reference.Quote(fmt.Sprint(name))
	if namespace != nil {
		text += " in namespace " + reference.Quote(fmt.Sprint(namespace))
	}
	return text
}
