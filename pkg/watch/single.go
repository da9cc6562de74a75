package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// singleResync is how often a Single looks at what it knows again.
const singleResync = 30 * time.Second

// Single watches one named object and calls back immediately. It has no index
// and no debouncing. All methods may be called by any goroutine, also from
// callbacks.
//
// The usual pattern is one function for OnSyncComplete and OnChange: both get
// the current state, or nil if the object does not exist.
type Single struct {
	config   SingleConfig
	log      *slog.Logger
	informer cache.SharedIndexInformer
	source   *source
	failures *failures
	life     *lifecycle
	inbox    *inbox

	// What the last callback was given, if there was one; for its goroutine.
	shown *unstructured.Unstructured
	known bool
}

// NewSingle validates the configuration; the error joins a *ConfigError for
// each fault. It sends no request. For clients that wrap others see NewBulk.
func NewSingle(config SingleConfig, client dynamic.Interface) (*Single, error) {
	what := name(config.GVR, config.Namespace, config.Name)
	if err := config.check(client); err != nil {
		return nil, fmt.Errorf("watch %s: %w", what, err)
	}
	log := newLogger(config.Logger.WithValues("object", what))
	s := &Single{
		config:   config,
		log:      log,
		failures: newFailures(log, config.OnWatchError),
		life:     newLifecycle(),
		inbox:    &inbox{wake: make(chan struct{}, 1)},
	}
	byName := fields.OneTermEqualSelector(metav1.ObjectNameField, config.Name).String()
	s.source = &source{
		client: client, resource: config.GVR, namespace: config.Namespace, failures: s.failures,
		fields: serverFields{sure: byName, wide: byName}, prepare: s.prepare, selects: s.hasName,
		listing: make(chan struct{}, 1),
	}
	s.informer = s.source.informer(singleResync)
	return s, nil
}

// Start watches until the context ends or Stop is called, then returns nil; no
// callback runs any more. Only the first call starts anything. Others block
// until their context ends or the watcher is to end, and return the error of the
// first one; they do not wait for callbacks. A call after the end of the watcher
// returns that error, or ErrStopped if there is none.
func (s *Single) Start(ctx context.Context) error {
	return s.life.start(ctx, s.run)
}

// Stop ends the watcher for good, without waiting for it: Start returns when
// the last callback has. It may be called more than once and from callbacks.
func (s *Single) Stop() {
	s.life.stop()
}

func (s *Single) run(ctx context.Context) error {
	registration, err := attach(s.informer, s.failures, s.handler(ctx))
	if err != nil {
		return fmt.Errorf("watch %s: %w", s.name(), err)
	}
	var running sync.WaitGroup
	running.Go(func() { s.informer.RunWithContext(discardClientLogs(ctx, s.config.Logger)) })
	running.Go(func() { s.callBack(ctx) })
	running.Go(func() { s.failures.report(ctx) })
	running.Go(func() {
		if cache.WaitFor(ctx, "", registration.HasSyncedChecker()) && s.scoped(ctx) {
			s.inbox.open(s.Object, func() { close(s.life.synced) })
		}
	})
	running.Wait()
	s.source.wait()
	return nil
}

// prepare turns whole numbers into int64, as in a Bulk. An object in a
// namespace shows that the kind has namespaces.
func (s *Single) prepare(object *unstructured.Unstructured) {
	wholeToInt(object.Object)
	if s.config.Namespace == "" && object.GetNamespace() != "" {
		s.life.fail(s.unscoped())
	}
}

// scoped ends the watcher if it has no namespace and the kind needs one, which
// the list of all namespaces does not show where it is empty: only requests for
// the object do. The path without a namespace must be unknown, and the one with
// a namespace known: the first alone is no proof, as an API server that does not
// serve a new custom resource yet knows neither. Without proof, or without the
// permission to get the object, one that is created later shows it.
func (s *Single) scoped(ctx context.Context) bool {
	if s.config.Namespace != "" || s.Object() != nil {
		return true
	}
	err := s.get(ctx, metav1.NamespaceNone)
	if apierrors.IsNotFound(err) && !objectNotFound(err) {
		if err = s.get(ctx, metav1.NamespaceDefault); objectNotFound(err) {
			s.life.fail(s.unscoped())
		}
	}
	if err != nil && !objectNotFound(err) {
		s.log.Log(ctx, levelDebug, "cannot find out whether the kind has namespaces", "error", err)
	}
	return ctx.Err() == nil
}

// get requests the object in the namespace.
func (s *Single) get(ctx context.Context, namespace string) error {
	requestCtx, request := newAttempt(discardClientLogs(ctx, s.config.Logger), bodyLimit, watchLimit)
	defer request.cancel(nil)
	_, err := s.source.client.Resource(s.config.GVR).Namespace(namespace).Get(requestCtx, s.config.Name, metav1.GetOptions{})
	return request.finish(err)
}

// objectNotFound reports whether only the object is missing: then the server
// names it. Where it does not know the path of the request, it does not.
func objectNotFound(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name != ""
}

func (s *Single) unscoped() error {
	return fmt.Errorf("watch %s: %w", s.name(), &ConfigError{
		Field: "Namespace", Reason: fmt.Sprintf("is missing; %s has namespaces", s.config.GVR.GroupResource()),
	})
}

func (s *Single) name() string { return name(s.config.GVR, s.config.Namespace, s.config.Name) }

// handler filters events, on the informer's goroutine, and enqueues.
func (s *Single) handler(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { s.inbox.put() },
		UpdateFunc: func(before, now any) {
			old, _ := before.(*unstructured.Unstructured)
			object, _ := now.(*unstructured.Unstructured)
			switch {
			case object == nil || old == nil:
			case unchanged(old, object):
				s.log.Log(ctx, levelTrace, "skipped a resync event")
			case sameGeneration(old, object):
				s.log.Log(ctx, levelTrace, "skipped an update with the same generation")
			default:
				s.inbox.put()
			}
		},
		DeleteFunc: func(event any) {
			if namespace, name, ok := deleted(event); ok && namespace == s.config.Namespace && name == s.config.Name {
				s.inbox.put()
			}
		},
	}
}

// hasName drops objects of other names: a server that ignores the field selector
// (such as client-go's fake) sends them.
func (s *Single) hasName(object *unstructured.Unstructured) bool {
	return object.GetName() == s.config.Name && object.GetNamespace() == s.config.Namespace
}

// unchanged: a resync delivers the very object of the cache; a relist may
// deliver another copy of the same version.
func unchanged(old, object *unstructured.Unstructured) bool {
	return old == object ||
		isResync(old, object) && object.GetResourceVersion() != ""
}

// sameGeneration: only status or metadata have changed. Kinds without
// generation (ConfigMap, Secret) have 0, which says nothing, and an object
// that was created again begins at 1 again. One that was restored from a backup
// may have reached the same generation by another change.
func sameGeneration(old, object *unstructured.Unstructured) bool {
	return object.GetGeneration() != 0 && old.GetGeneration() == object.GetGeneration() && old.GetUID() == object.GetUID() &&
		!isEarlier(object.GetResourceVersion(), old.GetResourceVersion()) && reflect.DeepEqual(fieldsOf(old), fieldsOf(object))
}

// fieldsOf are the fields of an object but status and metadata.
func fieldsOf(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	delete(fields, "metadata")
	delete(fields, "status")
	return fields
}

// Object is the object as the watcher knows it; nil if it does not exist, or is
// not known yet. It may be known shortly before IsSynced is true. It belongs to
// the cache: read it, DeepCopy it to change it.
func (s *Single) Object() *unstructured.Unstructured {
	key := cache.ObjectName{Namespace: s.config.Namespace, Name: s.config.Name}.String()
	found, _, _ := s.informer.GetStore().GetByKey(key)
	object, _ := found.(*unstructured.Unstructured)
	return object
}

// IsSynced reports whether the initial state is known, also if the object does
// not exist. Once true, it stays so.
func (s *Single) IsSynced() bool {
	return s.life.isSynced()
}

// WaitForSync blocks until sync. The error wraps the context's error and its
// cause, or what Start returns, or ErrStopped; and the last watch error if there
// was one.
func (s *Single) WaitForSync(ctx context.Context) error {
	return s.life.wait(ctx, s.name(), s.failures)
}

// LastWatchError is when and why list or watch failed last; the zero time if
// never. The watcher tries again by itself, with pauses of up to a minute.
// An expired resourceVersion (410) is no error, unless the request named none or
// the third watch in a row fails at once. Neither is the end of a stream, unless
// it comes before the initial list is complete, or within a second and before
// any event.
func (s *Single) LastWatchError() (time.Time, error) {
	return s.failures.last()
}
