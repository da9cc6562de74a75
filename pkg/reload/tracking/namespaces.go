package tracking

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// namespaces knows the labels of namespaces where the namespace selector looks at them, and queues the workloads of a
// namespace whose labels change.
type namespaces struct {
	scope     scope.Scope
	cache     cache.Cache
	apiReader client.Reader
	failing   failingWatches
	index     *index.Index
	queue     *queue.Queue
	// inScopeSince is called with a namespace whose labels bring it into scope, and its version; with none where it is out of scope, or gone.
	inScopeSince func(namespace, version string)
	log          logr.Logger
	// readLive has the names of the namespaces that were read live since the watch has last delivered them.
	readLive sync.Map
}

// namespaceKind is the kind whose labels the namespace selector looks at, namespaceResource its resource.
var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

const namespaceResource = "namespaces"

func emptyNamespace() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(namespaceKind)
	return m
}

// attach has an informer of the manager's cache call the handler of namespaces. Unlike a source of controller-runtime it
// never fails the start: it is tried until the context ends. The same failure is logged once.
func (n *namespaces) attach(ctx context.Context) {
	pause, failure := listwatch.SlowBackoff(), ""
	for {
		informer, err := n.cache.GetInformer(ctx, emptyNamespace(), cache.BlockUntilSynced(false))
		if err == nil {
			if _, err = informer.AddEventHandler(n); err == nil {
				n.failing.discovered(nil)
				if failure != "" {
					n.log.Info("watching namespaces")
				}
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		n.failing.discovered(err)
		if listwatch.IsNewCause(&failure, err) {
			n.log.Error(err, "cannot watch namespaces; retrying")
		}
		if !listwatch.Sleep(ctx, pause.Step()) {
			return
		}
	}
}

// Scope is whether a workload may be handled.
type Scope int

// What a scope can be.
const (
	// Outside means that the workload must be left alone.
	Outside Scope = iota
	// Inside means that it may be handled.
	Inside
	// Unknown means that the labels of its namespace cannot be read: they have not been listed yet, or the watch fails.
	Unknown
)

// Scope reports whether a workload may be handled, by its labels and its namespace.
func (t *Tracking) Scope(ctx context.Context, key workload.Key, labels map[string]string) Scope {
	return t.namespaces.scopeOf(ctx, key.Namespace, labels)
}

// unknownScopeLook is when a workload is looked at again whose scope is Unknown.
const unknownScopeLook = 10 * time.Second

// LookAgain returns when to look again at a workload whose scope is Unknown. No event need follow: the first list of the namespaces queues
// workloads before it is complete, and can be read only then. While their watch fails, the re-check queues all workloads.
func (t *Tracking) LookAgain() reconcile.Result {
	if t.failing.includesNamespaces(t.with.Scope) {
		return reconcile.Result{}
	}
	return queue.After(unknownScopeLook, queue.Workload)
}

// StaysInScope reports whether a workload that was in scope a moment ago may still be handled, with the labels that a live read shows.
func (t *Tracking) StaysInScope(ctx context.Context, key workload.Key, labels map[string]string) bool {
	return t.Scope(ctx, key, labels) != Outside
}

func (n *namespaces) scopeOf(ctx context.Context, namespace string, labels map[string]string) Scope {
	switch {
	case !n.scope.Object(namespace, labels):
		return Outside
	case !n.scope.SelectsNamespaces():
		return Inside
	}
	ns := emptyNamespace()
	switch err := n.read(ctx, namespace, ns); {
	case apierrors.IsNotFound(err): // its own event queues the workload again
		return Outside
	case err != nil:
		return Unknown
	case n.scope.Namespace(namespace, ns.GetLabels()):
		return Inside
	default:
		return Outside
	}
}

// read reads the metadata of a namespace: from the cache, or live where its watch fails.
func (n *namespaces) read(ctx context.Context, name string, into client.Object) error {
	if n.failing.includesNamespaces(n.scope) {
		n.readLive.Store(name, nil)
		limited, cancel := context.WithTimeout(ctx, liveReadLimit)
		defer cancel()
		if n.apiReader.Get(limited, types.NamespacedName{Name: name}, into) == nil {
			return nil
		}
	}
	ended, end := context.WithCancel(ctx)
	end() // a cache that has not listed the namespaces yet is not awaited: that would occupy a worker
	return n.cache.Get(ended, types.NamespacedName{Name: name}, into)
}

// OnAdd queues the workloads of a namespace that is listed or created.
func (n *namespaces) OnAdd(obj any, _ bool) {
	if ns, ok := obj.(metav1.Object); ok {
		n.queue.Add(queue.Workload, n.index.In(ns.GetName())...)
	}
}

// OnUpdate queues the workloads of a namespace whose labels changed, since it may have entered the scope. While its watch failed, it may
// have been judged by other labels than those from before, and it is not known since when it has these.
func (n *namespaces) OnUpdate(oldObj, newObj any) {
	before, ok := oldObj.(metav1.Object)
	after, ok2 := newObj.(metav1.Object)
	if !ok || !ok2 {
		return
	}
	name := after.GetName()
	_, readLive := n.readLive.LoadAndDelete(name)
	if !readLive && maps.Equal(before.GetLabels(), after.GetLabels()) {
		return
	}
	switch {
	case !n.scope.Namespace(name, after.GetLabels()):
		n.inScopeSince(name, "")
	case !readLive && !n.scope.Namespace(name, before.GetLabels()):
		n.inScopeSince(name, after.GetResourceVersion())
	}
	n.queue.Add(queue.Workload, n.index.In(name)...)
}

// OnDelete has little to do: the workloads go with their namespace.
func (n *namespaces) OnDelete(obj any) {
	if name, err := toolscache.DeletionHandlingObjectToName(obj); err == nil {
		n.readLive.Delete(name.Name)
		n.inScopeSince(name.Name, "")
	}
}
