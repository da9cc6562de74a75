package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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

// errUnanswered is what client-go hides in an empty stream.
var errUnanswered = errors.New("the connection broke before the server answered the watch")

// source is what a watcher lists and watches.
//
// It prepares and selects the objects itself. An informer's own transform would
// run twice for those of a streamed list, and in the middle of the informer's
// work; here it runs once, beside it, and the informer's cache never holds an
// object that is not selected.
type source struct {
	client    dynamic.Interface
	resource  schema.GroupVersionResource
	namespace string
	labels    string
	fields    serverFields
	// prepare changes an object that the server has sent, for every state of
	// it once, before anything else sees it: the only place where it may be
	// changed. One call may follow another before that has returned, where a
	// stream is given up for a new one.
	prepare func(*unstructured.Unstructured)
	// selects chooses among the prepared objects.
	selects  func(*unstructured.Unstructured) bool
	failures *failures
	streams  sync.WaitGroup // that are being observed

	// narrow says that the server has rejected a field which only some
	// resources support.
	narrow atomic.Bool
	// bookmarks says that the server has sent one after the initial list. Then
	// it sends them all the time.
	bookmarks atomic.Bool
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

// listerWatcher records also those errors that client-go handles without a
// report: in a stream, or at its renewal. Clients that cannot stream a list say
// so by a method, which is passed on.
func (s *source) listerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  s.list,
		WatchFuncWithContext: s.watch,
	}, s.client)
}

func (s *source) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := s.tryList(ctx, options)
	if s.narrowed(ctx, err) {
		list, err = s.tryList(ctx, options)
	}
	if err != nil {
		s.failures.record(ctx, err)
		return nil, err
	}
	for i := range list.Items {
		s.prepare(&list.Items[i])
	}
	list.Items = slices.DeleteFunc(list.Items, func(item unstructured.Unstructured) bool { return !s.selects(&item) })
	return list, nil
}

func (s *source) tryList(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, request := newAttempt(ctx, bodyLimit, listLimit)
	defer request.cancel(nil)
	s.limit(&options)
	list, err := s.client.Resource(s.resource).Namespace(s.namespace).List(ctx, options)
	return list, request.finish(err)
}

func (s *source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	stream, err := s.tryWatch(ctx, options)
	if s.narrowed(ctx, err) {
		stream, err = s.tryWatch(ctx, options)
	}
	switch {
	case err == nil:
		return stream, nil
	case options.SendInitialEvents != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		s.failures.log.Log(ctx, levelDebug, "The server does not stream lists; listing", "error", err)
	default:
		s.failures.record(ctx, err)
	}
	return nil, err
}

func (s *source) tryWatch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	requestCtx, request := newAttempt(ctx, watchLimit, watchLimit)
	s.limit(&options)
	stream, err := s.client.Resource(s.resource).Namespace(s.namespace).Watch(requestCtx, options)
	err = request.finish(err)
	switch {
	case err == nil && isEmpty(stream):
		err = errUnanswered
	case err == nil:
		return s.observe(ctx, request, stream, options), nil
	case stream != nil:
		stream.Stop()
	}
	request.cancel(nil)
	return nil, err
}

// limit makes the server choose, as far as it can.
func (s *source) limit(options *metav1.ListOptions) {
	options.LabelSelector = s.labels
	options.FieldSelector = s.fields.wide
	if s.narrow.Load() {
		options.FieldSelector = s.fields.sure
	}
}

// narrowed reports whether to try again with the fields that every resource
// supports, after one with more.
func (s *source) narrowed(ctx context.Context, err error) bool {
	if !apierrors.IsBadRequest(err) || s.fields.wide == s.fields.sure || s.narrow.Swap(true) {
		return false
	}
	s.failures.log.Log(ctx, levelDebug, "The server does not select by this field; selecting here", "fields", s.fields.wide, "error", err)
	return true
}
