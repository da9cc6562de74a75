package tracking

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// Watches reports which watches fail; watchhealth.Monitor does. A resource is written as in the rule of a Role.
type Watches interface {
	Failing(resource, namespace string) bool
	// AnyFailing reports whether any watch fails.
	AnyFailing() bool
	// Discovered records how the lookup of a resource ended, before which nothing is watched.
	Discovered(about watchhealth.Watch, err error)
}

// Mapper knows the resources of kinds; a meta.RESTMapper does.
type Mapper interface {
	RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// failingWatches are those whose changes the loop does not see. Without a health, all watches work.
type failingWatches struct {
	health Watches
	mapper Mapper
	now    func() time.Time
}

// any reports whether any watch fails.
func (f failingWatches) any() bool { return f.health != nil && f.health.AnyFailing() }

// includes reports whether the watch of a resource fails in a namespace.
func (f failingWatches) includes(resource, namespace string) bool {
	return f.health != nil && resource != "" && f.health.Failing(resource, namespace)
}

// includesPatterns reports whether the watch fails of a kind of config objects that patterns of a namespace can match.
func (f failingWatches) includesPatterns(namespace string) bool {
	return slices.ContainsFunc(append(reference.Kinds(), reference.SecretProviderClass), func(kind reference.Kind) bool {
		return f.includes(kind.Content(), namespace)
	})
}

// includesKind is includes for a kind of workloads.
func (f failingWatches) includesKind(w *watched, namespace string) bool {
	return f.health != nil && f.includes(w.resource(f.mapper, f.now()), namespace)
}

// discovered records how the lookup of the resource of namespaces ended.
func (f failingWatches) discovered(err error) {
	if f.health != nil {
		f.health.Discovered(watchhealth.Watch{Resource: namespaceResource}, err)
	}
}

// includesNamespaces reports whether labels of namespaces matter and their watch fails.
func (f failingWatches) includesNamespaces(s scope.Scope) bool {
	return s.SelectsNamespaces() && f.includes(namespaceResource, "")
}
