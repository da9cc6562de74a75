package observe

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
)

// again is the pause before an API server that does not answer is asked again.
const again = 50 * time.Millisecond

// list takes in the objects that there are and returns the resourceVersion to watch from.
func (w *Watcher) list(ctx context.Context, kind Kind) (string, error) {
	list, err := w.objects.Resource(kind.Resource).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("observe %s: %w", kind.Resource.Resource, err)
	}
	there := map[Workload]bool{}
	for i := range list.Items {
		w.take(kind, &list.Items[i], false)
		there[Workload{kind.Name, list.Items[i].GetNamespace(), list.Items[i].GetName()}] = true
	}
	w.markDeleted(kind, there)
	return list.GetResourceVersion(), nil
}

// markDeleted marks as deleted what a list does not name any more.
func (w *Watcher) markDeleted(kind Kind, there map[Workload]bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for workload, h := range w.histories {
		if workload.Kind == kind.Name && !there[workload] {
			h.deleted = true
		}
	}
}

// follow watches from a version on. A watch that ends goes on where it was; only when the API server no longer has the
// history since then, everything is listed anew.
func (w *Watcher) follow(ctx context.Context, kind Kind, version string) {
	for ctx.Err() == nil {
		err := w.watch(ctx, kind, &version)
		if expired(err) {
			if listed, err := w.list(ctx, kind); err == nil {
				version = listed
			}
		}
		if err == nil {
			continue
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			w.fail(err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

func (w *Watcher) fail(err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.failure = err
	close(w.changed)
	w.changed = make(chan struct{})
}

// watch takes in events until the watch ends and keeps the version up to date.
func (w *Watcher) watch(ctx context.Context, kind Kind, version *string) error {
	stream, err := w.objects.Resource(kind.Resource).Namespace(w.namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: *version, AllowWatchBookmarks: true,
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("watch %s: an event with %T", kind.Resource.Resource, event.Object)
		}
		if event.Type != watch.Bookmark {
			w.take(kind, object, event.Type == watch.Deleted)
		}
		*version = object.GetResourceVersion()
	}
	return nil
}

// Sync is a barrier: it returns when every version that the API server had stored at the time of the call was seen. It
// lists the workloads past all caches and waits until the watch has come as far for each of them; a watch delivers the
// versions of an object in order, so that whatever was before has been seen too. It writes nothing, so it disturbs nothing.
func (w *Watcher) Sync(ctx context.Context) error {
	for _, kind := range w.kinds {
		list, err := w.metadata.Resource(kind.Resource).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list %s for a barrier: %w", kind.Resource.Resource, err)
		}
		there := map[Workload]string{}
		for i := range list.Items {
			item := &list.Items[i]
			there[Workload{kind.Name, item.Namespace, item.Name}] = item.ResourceVersion
		}
		err = w.Await(ctx, "the watch of "+kind.Resource.Resource, func() error { return w.reached(kind, there, list.ResourceVersion) })
		if err != nil {
			return err
		}
	}
	return w.err()
}

// reached is nil if the watch has seen the given versions, and the deletion of everything else that it knew when the
// list was made.
func (w *Watcher) reached(kind Kind, versions map[Workload]string, listed string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for workload, version := range versions {
		h := w.histories[workload]
		if h == nil {
			return fmt.Errorf("%s was not seen", workload)
		}
		order, err := resourceversion.CompareResourceVersion(h.version, version)
		if err != nil {
			return fmt.Errorf("compare versions of %s: %w", workload, err)
		}
		if order < 0 {
			return fmt.Errorf("%s was seen up to version %s of %s", workload, h.version, version)
		}
	}
	return w.deletionsSeen(kind, versions, listed)
}

func (w *Watcher) deletionsSeen(kind Kind, versions map[Workload]string, listed string) error {
	for workload, h := range w.histories {
		if _, exists := versions[workload]; workload.Kind != kind.Name || exists || h.deleted {
			continue
		}
		order, err := resourceversion.CompareResourceVersion(h.version, listed)
		if err != nil {
			return fmt.Errorf("compare versions of %s: %w", workload, err)
		}
		if order <= 0 { // otherwise it was created after the list
			return fmt.Errorf("the deletion of %s was not seen", workload)
		}
	}
	return nil
}
