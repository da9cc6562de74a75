package watch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

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
	log := newLogger(config.Logger, "object", what)
	s := &Single{
		config:   config,
		log:      log,
		failures: &failures{log: log},
		life:     newLifecycle(),
		inbox:    &inbox{wake: make(chan struct{}, 1)},
	}
	s.source = &source{
		client: client, resource: config.GVR, namespace: config.Namespace, failures: s.failures,
		tweak: s.selectName, prepare: convert,
	}
	s.informer = s.source.informer(singleResync)
	return s, nil
}

func (s *Single) selectName(options *metav1.ListOptions) {
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.config.Name).String()
}

// Start watches until the context ends or Stop is called, then returns nil; no
// callback runs any more. Only the first call starts anything; others block
// until their context or the watcher ends, and return what the first one
// returned: ErrStopped, if Stop was called before.
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
		return fmt.Errorf("watch %s: %w", name(s.config.GVR, s.config.Namespace, s.config.Name), err)
	}
	ctx = quiet(ctx, s.config.Logger)
	var running sync.WaitGroup
	running.Go(func() { s.informer.RunWithContext(ctx) })
	running.Go(func() { s.callBack(ctx) })
	running.Go(func() {
		if cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
			s.inbox.open(s.Object, func() { close(s.life.synced) })
		}
	})
	running.Wait()
	s.source.wait()
	return nil
}

// convert turns whole numbers into int64, as in a Bulk.
func convert(object *unstructured.Unstructured) {
	wholeToInt(object.Object)
}

// handler filters events, on the informer's goroutine, and enqueues.
func (s *Single) handler(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(event any) {
			if _, ok := s.own(event); ok {
				s.inbox.put()
			}
		},
		UpdateFunc: func(before, now any) {
			old, _ := before.(*unstructured.Unstructured)
			object, ok := s.own(now)
			switch {
			case !ok || old == nil:
			case unchanged(old, object):
				s.log.Log(ctx, levelTrace, "Skipped a resync event")
			case sameGeneration(old, object):
				s.log.Log(ctx, levelTrace, "Skipped an update with the same generation")
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

// own drops objects of other names: a server that ignores the field selector
// (such as client-go's fake) sends them.
func (s *Single) own(event any) (*unstructured.Unstructured, bool) {
	object, ok := event.(*unstructured.Unstructured)
	return object, ok && object.GetName() == s.config.Name && object.GetNamespace() == s.config.Namespace
}

// unchanged: a resync delivers the very object of the cache; a relist may
// deliver another copy of the same version.
func unchanged(old, object *unstructured.Unstructured) bool {
	return old == object ||
		isResync(old, object) && object.GetResourceVersion() != ""
}

// sameGeneration: only status or metadata have changed. Kinds without
// generation (ConfigMap, Secret) have 0, which tells nothing, and an object
// that was created anew begins at 1 again.
func sameGeneration(old, object *unstructured.Unstructured) bool {
	return object.GetGeneration() != 0 && old.GetGeneration() == object.GetGeneration() && old.GetUID() == object.GetUID()
}

// Object is the object as the watcher knows it; nil if it does not exist or
// before sync. It belongs to the cache: read it, DeepCopy it to change it.
func (s *Single) Object() *unstructured.Unstructured {
	key := cache.ObjectName{Namespace: s.config.Namespace, Name: s.config.Name}.String()
	found, exists, err := s.informer.GetStore().GetByKey(key)
	if object, ok := found.(*unstructured.Unstructured); ok && exists && err == nil {
		return object
	}
	return nil
}

// IsSynced tells that the initial state is known, be it that the object does
// not exist. Once true, it stays so.
func (s *Single) IsSynced() bool {
	return s.life.isSynced()
}

// WaitForSync blocks until sync. The error wraps the context's, and the last
// watch error if there was one, or ErrStopped.
func (s *Single) WaitForSync(ctx context.Context) error {
	return s.life.wait(ctx, name(s.config.GVR, s.config.Namespace, s.config.Name), s.failures)
}

// LastWatchError is when and why list or watch failed last; the zero time if
// never. The watcher tries again by itself, with exponential backoff up to
// 30 s. An expired resourceVersion (410) and the end of a stream are no errors.
func (s *Single) LastWatchError() (time.Time, error) {
	return s.failures.last()
}
