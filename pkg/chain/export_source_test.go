package chain

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// BoundReferences lowers how many references a namespace may have in a Chain that is not configured yet.
func (c *Chain) BoundReferences(most int) { c.evaluator.sources.mostReferences = most }

// Watching is what the goroutines of a watch call, for tests that call it late.
type Watching struct{ source *source }

// Watching returns that of the present watch of a resource.
func (c *Chain) Watching(resource schema.GroupVersionResource) Watching {
	for _, s := range c.evaluator.sources.all {
		if s.resource.GVR == resource {
			return Watching{s}
		}
	}
	return Watching{}
}

// Deliver is called for each object.
func (w Watching) Deliver(before, now *unstructured.Unstructured) { w.source.deliver(before, now) }

// Reduce is called for each object that is read.
func (w Watching) Reduce(object *unstructured.Unstructured) { w.source.reduce(object) }

// Synced is called after the first list.
func (w Watching) Synced() {
	w.source.with.inbox.gather(func(p *pending) {
		p.changes = append(p.changes, sourceChange{source: w.source, state: referent.SourceSynced})
	})
}

// Replace has another watch take its place, as when references are left out that could be kept.
func (w Watching) Replace() {
	w.source.with.inbox.gather(func(p *pending) { p.restarts = append(p.restarts, w.source) })
}

// Failed is called when a list or a watch fails, Refused when it is refused.
func (w Watching) Failed(ctx context.Context, err error) { w.source.failed(ctx, err) }

func (w Watching) Refused(ctx context.Context) {
	w.Failed(ctx, apierrors.NewForbidden(w.source.resource.GVR.GroupResource(), "", nil))
}
