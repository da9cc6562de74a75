package tracking

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
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
	return f.health != nil && slices.ContainsFunc(append(reference.Kinds(), reference.SecretProviderClass), func(kind reference.Kind) bool {
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

// Get returns a workload as its watch shows it, or live where that fails; false if there is none.
func (t *Tracking) Get(ctx context.Context, key workload.Key) (workload.Summary, bool) {
	w := t.watches.get(key.Kind)
	if w == nil {
		return workload.Summary{}, false
	}
	kept, ok := w.workloads.Get(key.Namespace, key.Name)
	if !t.failing.includesKind(w, key.Namespace) {
		return kept, ok
	}
	return t.getLive(ctx, w, key)
}

// getLive reads a workload live, and keeps the index up to date in place of the watch. Where the read fails or is skipped, what is kept
// must do until the next re-check; where the watch has delivered the workload meanwhile, that may be newer.
func (t *Tracking) getLive(ctx context.Context, w *watched, key workload.Key) (workload.Summary, bool) {
	known, _ := w.workloads.Get(key.Namespace, key.Name)
	u := w.kind.NewObject()
	err := w.reads.do(ctx, func(ctx context.Context) error {
		return t.with.APIReader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, u)
	})
	w.setSkipped(key, errors.Is(err, errSkipped))
	live := workload.Summary{Kind: w.kind}
	switch {
	case err == nil:
		live = workload.Object{Kind: w.kind, Raw: u.Object}.Summary()
	case !apianswer.NotFound(err):
		return w.workloads.Get(key.Namespace, key.Name)
	}
	w.unlessGone(func() {
		if now, _ := w.workloads.Get(key.Namespace, key.Name); now.Kept != known.Kept {
			live = now
			return
		}
		w.setReadLive(key)
		if live.Kept == nil {
			t.index.Delete(key)
			t.Forget(key)
			return
		}
		t.enter(key, live)
	})
	return live, live.Kept != nil
}
