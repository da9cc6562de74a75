package reload

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// watch registers the sources of the queue.
func (l *loop) watch(c controller.TypedController[Key], log logr.Logger) error {
	l.store.OnEvent(l.configChanged)
	l.keys.OnChange(l.addAll)
	err := c.Watch(l.source(func(ctx context.Context) {
		l.opts.Kinds.Follow(func(kind workload.Kind) { l.join(ctx, kind) }, l.leave)
	}))
	if err != nil || !l.opts.Scope.SelectsNamespaces() {
		return err
	}
	return c.Watch(l.source(func(ctx context.Context) {
		l.attachNamespaces(ctx, log.WithValues("kind", "v1/Namespace"))
	}))
}

// emptyObject is what a workload is read into as a whole.
func emptyObject(kind workload.Kind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind.GroupVersionKind)
	return u
}

func emptyNamespace() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(namespaceKind)
	return m
}

// retryNamespaces is how often it is tried again to watch namespaces.
var retryNamespaces = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second, Jitter: 0.1}

// source feeds the queue by what begins when the controller starts its sources.
func (l *loop) source(begin func(ctx context.Context)) source.TypedSource[Key] {
	return source.TypedFunc[Key](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[Key]) error {
		l.queue.Store(&queue{q})
		go begin(ctx)
		return nil
	})
}

// attachNamespaces has an informer of the manager's cache call the handler of namespaces. Unlike a source of
// controller-runtime it never fails the start: it is tried until the context ends.
func (l *loop) attachNamespaces(ctx context.Context, log logr.Logger) {
	delay := retryNamespaces
	for {
		informer, err := l.cache.GetInformer(ctx, emptyNamespace(), cache.BlockUntilSynced(false))
		if err == nil {
			if _, err = informer.AddEventHandler(namespaceHandler{l}); err == nil {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		log.Error(err, "Cannot watch namespaces; trying again")
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay.Step()):
		}
	}
}

// What is urgent is a change of configuration. What a workload itself tells (it is there, it was edited, it was stamped)
// can wait until no reload is due: so a fan-out is not slowed by the Events about its first reloads.
const (
	priorityConfig   = 0
	priorityWorkload = handler.LowPriority
)

// add queues workloads, unless this process is a standby: when it becomes the leader, lead queues all that are known.
func (l *loop) add(priority int, keys ...Key) {
	q := l.queue.Load()
	if q == nil || l.leads.Load() == nil {
		return
	}
	if priority < priorityConfig {
		l.memory.aging.Queued(l.now(), keys...)
	}
	if pq, ok := q.TypedRateLimitingInterface.(priorityqueue.PriorityQueue[Key]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
		return
	}
	for _, key := range keys {
		q.Add(key)
	}
}

// configChanged is called by the config informers. What was there before the watch began is found by comparing.
func (l *loop) configChanged(e configstate.Event) {
	if e.Initial {
		return
	}
	// Noted before the index is asked: whoever enters it from now on finds the note.
	l.recent.Note(place{e.Namespace, e.Ref}, e.Received)
	keys := l.index.Trackers(e.Namespace, e.Ref)
	// What settles is queued already: under constant change each event would have each of its trackers looked at.
	keys = slices.DeleteFunc(keys, func(key Key) bool { return l.memory.Changed(key, e.Received) })
	l.add(priorityConfig, keys...)
}

// workloadHandler keeps the index and queues workloads that came or changed.
type workloadHandler struct {
	loop *loop
	of   *watched
}

// changed is called for each workload that comes, changes or goes; changes that cannot matter are dropped.
func (h workloadHandler) changed(before, after workload.Summary) {
	if before.Kept != nil && after.Kept != nil && !after.Matters(before) {
		return
	}
	h.of.unlessGone(func() {
		if before.Kept != nil && (after.Kept == nil || before.UID() != after.UID()) {
			// Here too, since on a standby nobody treats what is queued.
			h.loop.memory.Forget(keyOf(before))
		}
		if after.Kept != nil {
			h.update(after)
			return
		}
		h.loop.index.Delete(keyOf(before))
		h.loop.add(priorityWorkload, keyOf(before))
	})
}

func (h workloadHandler) update(s workload.Summary) {
	view, _ := h.loop.opts.Reader.ReadSummary(s)
	key := keyOf(s)
	for _, ref := range h.loop.index.Set(key, view.Intent.Refs()) {
		if at, ok := h.loop.recent.At(place{key.Namespace, ref}, h.loop.now()); ok {
			h.loop.memory.Changed(key, at)
		}
	}
	h.loop.add(priorityWorkload, key)
}

// namespaceHandler queues the workloads of a namespace whose labels changed, since it may have entered the scope.
type namespaceHandler struct{ loop *loop }

// OnAdd is called for each namespace that is listed or created.
func (h namespaceHandler) OnAdd(obj any, _ bool) {
	if ns, ok := obj.(metav1.Object); ok {
		h.loop.add(priorityWorkload, h.loop.index.Inside(ns.GetName())...)
	}
}

// OnUpdate is called for each change of a namespace.
func (h namespaceHandler) OnUpdate(oldObj, newObj any) {
	before, ok := oldObj.(metav1.Object)
	after, ok2 := newObj.(metav1.Object)
	if ok && ok2 && !maps.Equal(before.GetLabels(), after.GetLabels()) {
		h.loop.add(priorityWorkload, h.loop.index.Inside(after.GetName())...)
	}
}

// OnDelete has nothing to do: the workloads go with their namespace.
func (h namespaceHandler) OnDelete(any) {}
