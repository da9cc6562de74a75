package watch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// failures keeps the last error of list and watch.
type failures struct {
	log *slog.Logger

	mu  sync.Mutex
	at  time.Time
	err error
}

func (f *failures) last() (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.err
}

// record logs and keeps the error, also one that has come before, unless it
// belongs to normal operation: an expired resourceVersion, the end of the
// watcher.
func (f *failures) record(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		return
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		f.log.Log(ctx, levelDebug, "Watch expired; listing again", "error", err)
		return
	}
	f.mu.Lock()
	f.at, f.err = time.Now(), err
	f.mu.Unlock()
	f.log.Warn("Watch failed; trying again", "error", err)
}

// handle is for the errors that client-go reports. Those of a list or watch,
// which were recorded where they happened, come here once more, wrapped.
func (f *failures) handle(ctx context.Context, _ *cache.Reflector, err error) {
	if _, recorded := f.last(); !errors.Is(err, recorded) {
		f.record(ctx, err)
	}
}

// source is what a watcher lists and watches.
//
// It prepares the objects itself. An informer's own transform would run twice
// for those of a streamed list, and in the middle of the informer's work; here
// it runs once, beside it.
type source struct {
	client    dynamic.Interface
	resource  schema.GroupVersionResource
	namespace string
	tweak     func(*metav1.ListOptions)
	// prepare changes an object that the server has sent, for every state of
	// it once, before anybody else sees it: the only place where it may be
	// changed. One call may follow another before that has returned, where a
	// stream is given up for a new one.
	prepare  func(*unstructured.Unstructured)
	failures *failures
	streams  sync.WaitGroup // that are being observed
}

// informer makes one of the objects.
func (s *source) informer(resync time.Duration) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(s.listerWatcher(), &unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{ResyncPeriod: resync, ObjectDescription: s.resource.String()})
}

// wait blocks until nothing is prepared any more; call it after the informer
// has ended.
func (s *source) wait() {
	s.streams.Wait()
}

// listerWatcher records also those errors that client-go handles itself and
// reports to nobody: in a stream, or at its renewal. Clients that cannot
// stream a list say so by a method, which is passed on.
func (s *source) listerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  s.list,
		WatchFuncWithContext: s.watch,
	}, s.client)
}

func (s *source) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.tweak(&options)
	list, err := s.client.Resource(s.resource).Namespace(s.namespace).List(ctx, options)
	if err != nil {
		s.failures.record(ctx, err)
		return nil, err
	}
	for i := range list.Items {
		s.prepare(&list.Items[i])
	}
	return list, nil
}

func (s *source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.tweak(&options)
	stream, err := s.client.Resource(s.resource).Namespace(s.namespace).Watch(ctx, options)
	switch {
	case err == nil:
		return s.observe(ctx, stream), nil
	case options.SendInitialEvents != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		s.failures.log.Log(ctx, levelDebug, "The server does not stream lists; listing", "error", err)
	default:
		s.failures.record(ctx, err)
	}
	return nil, err
}

// observed is a watch whose objects are prepared, and whose error events are
// recorded.
type observed struct {
	watch.Interface
	source *source
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

func (s *source) observe(ctx context.Context, stream watch.Interface) watch.Interface {
	// The buffer lets the streamed list of many objects pass in batches.
	o := &observed{Interface: stream, source: s, events: make(chan watch.Event, 256), done: make(chan struct{})}
	s.streams.Go(func() { o.forward(ctx) })
	return o
}

// ResultChan replaces the embedded one.
func (o *observed) ResultChan() <-chan watch.Event {
	return o.events
}

// Stop may be called more than once.
func (o *observed) Stop() {
	o.once.Do(func() { close(o.done) })
	o.Interface.Stop()
}

func (o *observed) stopped() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// forward ends with the stream, its Stop or the context, whichever comes first.
func (o *observed) forward(ctx context.Context) {
	defer close(o.events)
	for {
		var event watch.Event
		var open bool
		select {
		case event, open = <-o.Interface.ResultChan():
		case <-o.done:
			return
		case <-ctx.Done():
			return
		}
		if !open {
			o.source.failures.log.Log(ctx, levelTrace, "Watch closed")
			return
		}
		o.inspect(ctx, event)
		select {
		case o.events <- event:
		case <-o.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (o *observed) inspect(ctx context.Context, event watch.Event) {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		if object, ok := event.Object.(*unstructured.Unstructured); ok {
			o.source.prepare(object)
		}
	case watch.Error:
		// What a stream reports after Stop is the echo of its closing.
		if !o.stopped() {
			o.source.failures.record(ctx, apierrors.FromObject(event.Object))
		}
	case watch.Bookmark:
		// It has no object but its version.
	}
}
