package reference

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds returns the kinds of config objects.
func Kinds() []Kind { return []Kind{ConfigMap, Secret} }

// GroupVersionKind returns the kind as the API has it; false if it has none.
func (k Kind) GroupVersionKind() (schema.GroupVersionKind, bool) {
	switch k {
	case ConfigMap:
		return corev1.SchemeGroupVersion.WithKind("ConfigMap"), true
	case Secret:
		return corev1.SchemeGroupVersion.WithKind("Secret"), true
	default:
		return schema.GroupVersionKind{}, false
	}
}

// Resource returns the name of the objects in request paths and in the rules of a Role.
func (k Kind) Resource() string { return string(k) + "s" }
