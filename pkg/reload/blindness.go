package reload

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/absence"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Watches reports which watches fail; watchhealth.Monitor does. A resource is written as in the rule of a Role.
type Watches interface {
	Failing(resource, namespace string) bool
}

// blindness is what the loop cannot see because a watch fails. Without a health, all watches work.
type blindness struct {
	health Watches
	mapper meta.RESTMapper
}

// to reports whether the watch of a resource fails in a namespace.
func (b blindness) to(resource, namespace string) bool {
	return b.health != nil && resource != "" && b.health.Failing(resource, namespace)
}

// toKind is to for a kind of workloads.
func (b blindness) toKind(gvk schema.GroupVersionKind, namespace string) bool {
	if b.health == nil {
		return false
	}
	mapping, err := b.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	return err == nil && b.to(mapping.Resource.GroupResource().String(), namespace)
}

// toNamespaces reports whether labels of namespaces matter and their watch fails.
func (b blindness) toNamespaces(s scope.Scope) bool {
	return s.SelectsNamespaces() && b.to("namespaces", "")
}

// workloads reads workloads as their watches show them, or live where these fail.
type workloads struct {
	tracking  *tracking
	blindness blindness
	live      client.Reader
}

// get returns a workload, or false if there is none.
func (r workloads) get(ctx context.Context, key workload.Key) (workload.Summary, bool) {
	w := r.tracking.watches.get(key.Kind)
	if w == nil {
		return workload.Summary{}, false
	}
	kept, ok := w.workloads.Get(key.Namespace, key.Name)
	if !r.blindness.toKind(w.kind.GroupVersionKind, key.Namespace) {
		return kept, ok
	}
	return r.getLive(ctx, w, key)
}

// getLive reads a workload live, and keeps the index up to date in place of the watch. Where the read fails, what is kept must
// do.
func (r workloads) getLive(ctx context.Context, w *watched, key workload.Key) (workload.Summary, bool) {
	u := emptyObject(w.kind)
	err := r.live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, u)
	switch {
	case absence.Certain(err):
		w.unlessGone(func() { r.tracking.index.Delete(key) })
		return workload.Summary{}, false
	case err != nil:
		return w.workloads.Get(key.Namespace, key.Name)
	}
	all := func(string) bool { return true }
	live := workload.Summary{Kind: w.kind, Kept: workload.Object{Kind: w.kind, Raw: u.Object}.Keep(workload.Keep{Label: all, Annotation: all})}
	w.unlessGone(func() { r.tracking.index.Enter(key, r.tracking.intent(live)) })
	return live, true
}

// emptyObject is what a workload is read into as a whole.
func emptyObject(kind workload.Kind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind.GroupVersionKind)
	return u
}
