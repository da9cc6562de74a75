// Package scope says which workloads an installation handles: the flags --namespaces, --namespaces-to-ignore,
// --namespace-selector and --object-selector as one pure predicate, so that the webhook and the loop mean the same.
//
// The labels that exclude a single workload (annotation.Keys, IgnoredLabel and DisabledLabel) are not part of it: the webhook keeps the
// managed annotations of such a workload, and removes only a request for a reload.
package scope

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// System is the namespace of the control plane's own workloads. It is in scope only where --namespaces names it.
const System = "kube-system"

// Scope limits an installation. The zero value is every namespace but System, and every object.
type Scope struct {
	// Namespaces are the only ones handled; empty means all.
	Namespaces []string
	// Ignored are namespaces that are not handled, whatever else selects them.
	Ignored []string
	// NamespaceSelector selects namespaces by their labels; nil selects all.
	NamespaceSelector labels.Selector
	// ObjectSelector selects workloads by their labels; nil selects all.
	ObjectSelector labels.Selector
}

// Object reports whether a workload with these labels in this namespace is in scope, as far as that is known without
// the namespace's own labels: for those, ask Namespace.
func (s Scope) Object(namespace string, objectLabels map[string]string) bool {
	return s.named(namespace) && matches(s.ObjectSelector, objectLabels)
}

// Namespace reports whether a namespace with these labels is in scope.
func (s Scope) Namespace(name string, namespaceLabels map[string]string) bool {
	return s.named(name) && matches(s.NamespaceSelector, namespaceLabels)
}

// Outside says in a sentence fragment why a workload is out of scope; it is empty for one that is in.
func (s Scope) Outside(namespace string, namespaceLabels, objectLabels map[string]string) string {
	switch {
	case slices.Contains(s.Ignored, namespace):
		return "--namespaces-to-ignore names " + namespace
	case !s.named(namespace) && len(s.Namespaces) == 0:
		return namespace + " is left out unless --namespaces names it"
	case !s.named(namespace):
		return "--namespaces does not name " + namespace
	case !matches(s.NamespaceSelector, namespaceLabels):
		return fmt.Sprintf("the labels of the namespace do not match --namespace-selector %q", s.NamespaceSelector)
	case !matches(s.ObjectSelector, objectLabels):
		return fmt.Sprintf("its labels do not match --object-selector %q", s.ObjectSelector)
	default:
		return ""
	}
}

// SelectsNamespaces reports whether labels of namespaces matter, so that they must be watched.
func (s Scope) SelectsNamespaces() bool {
	return s.NamespaceSelector != nil && !s.NamespaceSelector.Empty()
}

// LooksAt reports whether the label of a workload with this key matters for Object.
func (s Scope) LooksAt(objectLabel string) bool {
	if s.ObjectSelector == nil {
		return false
	}
	requirements, _ := s.ObjectSelector.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == objectLabel })
}

func (s Scope) named(namespace string) bool {
	if slices.Contains(s.Ignored, namespace) {
		return false
	}
	if len(s.Namespaces) == 0 {
		return namespace != System
	}
	return slices.Contains(s.Namespaces, namespace)
}

func matches(selector labels.Selector, set map[string]string) bool {
	return selector == nil || selector.Matches(labels.Set(set))
}
