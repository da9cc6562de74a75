package watch

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// prepare changes an object before anything else sees it; see source.
func (b *Bulk) prepare(object *unstructured.Unstructured) {
	if b.config.Transform != nil {
		b.transform(object)
	}
	b.indexer.Prepare(object)
}

func (b *Bulk) transform(object *unstructured.Unstructured) {
	b.transforming <- struct{}{}
	defer func() { <-b.transforming }()
	protect(b.log, "Transform", func() { b.config.Transform(object) })
}

// handler applies events, on the informer's goroutine, one after the other. It
// only updates the store and enqueues: while it blocks, client-go's buffer
// grows without bound.
func (b *Bulk) handler(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			b.apply(object)
			if isInInitialList {
				b.loaded.Store(int64(b.store.Len()))
			}
		},
		UpdateFunc: func(before, now any) {
			if isResync(before, now) {
				b.refresh(now)
				b.log.Log(ctx, levelTrace, "skipped a resync event")
				return
			}
			b.apply(now)
		},
		DeleteFunc: func(object any) {
			if namespace, name, ok := deleted(object); ok {
				b.forget(namespace, name)
			}
		},
	}
}

// isResync: the same object, delivered again because of a relist or a resync.
// Another UID means that it was deleted and created again between two looks.
func isResync(before, now any) bool {
	a, isObject := before.(metav1.Object)
	b, both := now.(metav1.Object)
	return isObject && both && a.GetResourceVersion() == b.GetResourceVersion() && a.GetUID() == b.GetUID()
}

// deleted names the object of a delete event, which may be wrapped in a
// tombstone, where the deletion itself was missed; then its last state may be
// stale or absent, and only the key is certain.
func deleted(object any) (namespace, name string, ok bool) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		namespace, name, err := cache.SplitMetaNamespaceKey(tombstone.Key)
		return namespace, name, err == nil
	}
	if object, ok := object.(metav1.Object); ok {
		return object.GetNamespace(), object.GetName(), true
	}
	return "", "", false
}

// apply brings the store to the object's new state. Whether that is an
// addition or an update depends on the store, not on the event. What does not
// match the field selector does not come here: see source.
func (b *Bulk) apply(event any) {
	object, ok := event.(*unstructured.Unstructured)
	if !ok {
		return
	}
	before, stored := b.put(object)
	switch {
	case !stored:
	case before == nil:
		b.report(nil, object, ChangeStats{Created: 1})
	case before.GetUID() != object.GetUID():
		// One change: no OnChange may come between.
		b.debouncer.Record(ChangeStats{Created: 1, Deleted: 1})
		b.notify(before, nil)
		b.notify(nil, object)
	default:
		b.report(before, object, ChangeStats{Modified: 1})
	}
}

// refresh stores the copy of an unchanged object that a relist has brought:
// then the store shares it with the informer's cache, and shows what the server
// sends now, which may be another representation of the same version. As the
// version is the same, it reports nothing.
func (b *Bulk) refresh(event any) {
	object, ok := event.(*unstructured.Unstructured)
	if !ok {
		return
	}
	stored := b.store.Object(object.GetNamespace(), object.GetName())
	if stored != nil && stored != object && isResync(stored, object) {
		b.put(object)
	}
}

// put stores the object under its keys and returns the one whose place it takes.
func (b *Bulk) put(object *unstructured.Unstructured) (before *unstructured.Unstructured, stored bool) {
	keys := b.indexer.Keys(object)
	if len(keys) == 0 {
		b.log.Error("object not indexed: it has too many keys", "namespace", object.GetNamespace(), "name", object.GetName(), "most", MaxKeys)
	}
	before, err := b.store.Put(object, keys...)
	if err != nil {
		b.log.Error("object not stored", "namespace", object.GetNamespace(), "name", object.GetName(), "error", err)
		return nil, false
	}
	return before, true
}

// forget removes the object, if it was in the store.
func (b *Bulk) forget(namespace, name string) {
	if before := b.store.DeleteObject(namespace, name); before != nil {
		b.report(before, nil, ChangeStats{Deleted: 1})
	}
}

func (b *Bulk) report(before, now *unstructured.Unstructured, stats ChangeStats) {
	b.debouncer.Record(stats)
	b.notify(before, now)
}

func (b *Bulk) notify(before, now *unstructured.Unstructured) {
	if b.config.OnObject != nil {
		protect(b.log, "OnObject", func() { b.config.OnObject(before, now) })
	}
}

// name is how logs and errors call what is watched: "deployments.apps/v1 in shop".
func name(gvr schema.GroupVersionResource, namespace, object string) string {
	text := schema.GroupResource{Group: gvr.Group, Resource: gvr.Resource}.String() + "/" + gvr.Version
	if object != "" {
		text += fmt.Sprintf(" %q", object)
	}
	if namespace != "" {
		text += " in " + namespace
	}
	return text
}
