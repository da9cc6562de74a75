package watch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// errUnanswered is what client-go hides in an empty stream.
var errUnanswered = errors.New("the connection broke before the server answered the watch")

// errRefused stands for an error after which client-go would pause.
var errRefused = errors.New("the server refused to stream the list")

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
	selects func(*unstructured.Unstructured) bool
	// tooLarge is Config.TooLarge.
	tooLarge func(error) bool
	failures *failures
	streams  sync.WaitGroup // that are being observed
	// listing holds a token while an object of a list is prepared, or tooLarge
	// runs.
	listing chan struct{}

	// narrow says that the server has rejected a field which only some
	// resources support.
	narrow atomic.Bool
	// refusal is the error that the next list returns without a request; see
	// fallBack.
	refusal atomic.Pointer[error]
	// bookmarks says that the server has sent one after the initial list. Then
	// it sends them all the time.
	bookmarks atomic.Bool
	// short counts the watches in a row that have ended at once without an event.
	short atomic.Int32
	// maybeRestored says that the server may be behind what was watched: it has
	// sent nothing for long.
	maybeRestored atomic.Bool
}

// informer makes one of the objects.
func (s *source) informer(resync time.Duration) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(s.listerWatcher(), &unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{ResyncPeriod: resync, ObjectDescription: s.resource.String()})
}

// wait blocks until nothing is prepared any more and tooLarge has returned; call
// it after the informer has ended. A list may still be running then: client-go
// does not wait for it.
func (s *source) wait() {
	s.streams.Wait()
	s.listing <- struct{}{}
	<-s.listing
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
	if refusal := s.refusal.Swap(nil); refusal != nil {
		return nil, *refusal
	}
	options.ResourceVersion, options.Limit = "", pageSize
	list, err := s.listPages(ctx, options)
	if err != nil {
		return nil, s.rejected(ctx, options, err)
	}
	s.maybeRestored.Store(false)
	return list, nil
}

// pageSize is how many objects are in memory as the server sends them: many
// large ones would fill it. A streamed list has one at a time. Where a page is
// too large, its objects are listed in smaller ones, or one at a time.
const pageSize = 10

// listPages lists the newest state, as a streamed list does. client-go asks for
// any state, or for one that is not older than the last: an API server that is
// behind the others would answer with an older one than another watch, or the
// process before, has seen. Where the version of the first page expires before
// the last one, all is listed at once, as client-go does.
func (s *source) listPages(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	all, left := &unstructured.UnstructuredList{}, 0 // left is how many objects are still listed in smaller pages
	for {
		page, err := s.listPage(ctx, options)
		switch {
		case isExpired(err) && options.Continue != "":
			all, options.Continue, options.Limit = &unstructured.UnstructuredList{}, "", 0
			continue
		case options.Limit > 1 && s.refusesSize(ctx, err):
			options.Limit, left = max(options.Limit/5, 1), max(left, int(options.Limit))
			continue
		case err != nil:
			return nil, err
		}
		if err := s.addPage(ctx, all, page); err != nil {
			return nil, err
		}
		if left -= len(page.Items); left <= 0 {
			options.Limit = pageSize
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			all.SetContinue("")
			return all, nil
		}
	}
}

// refusesSize reports whether an error of a list is one of Config.TooLarge. None
// is after the end of the watcher.
func (s *source) refusesSize(ctx context.Context, err error) (refused bool) {
	if err == nil || s.tooLarge == nil {
		return false
	}
	_ = s.whileListing(ctx, func() {
		protect(s.failures.log, "TooLarge", func() { refused = s.tooLarge(err) })
	})
	return refused
}

// addPage prepares the objects of a page, and adds those that are selected.
func (s *source) addPage(ctx context.Context, all, page *unstructured.UnstructuredList) error {
	for i := range page.Items {
		if err := s.whileListing(ctx, func() { s.prepare(&page.Items[i]) }); err != nil {
			return err
		}
		if s.selects(&page.Items[i]) {
			all.Items = append(all.Items, page.Items[i])
		}
	}
	if all.Object == nil {
		all.Object = page.Object // the watch continues at its version
	}
	return nil
}

func (s *source) listPage(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := s.tryList(ctx, options)
	if s.narrowed(ctx, err) {
		list, err = s.tryList(ctx, options)
	}
	return list, err
}

// whileListing calls a function of a list unless the watcher has ended; wait
// waits for it.
func (s *source) whileListing(ctx context.Context, call func()) error {
	s.listing <- struct{}{}
	defer func() { <-s.listing }()
	if err := ctx.Err(); err != nil {
		return err
	}
	call()
	return nil
}

func (s *source) tryList(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, request := newAttempt(ctx, bodyLimit, listLimit)
	defer request.cancel(nil)
	s.limit(&options)
	list, err := s.client.Resource(s.resource).Namespace(s.namespace).List(ctx, options)
	return list, request.finish(err)
}

func (s *source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := s.mayGoOn(ctx, options); err != nil {
		return nil, err
	}
	stream, err := s.tryWatch(ctx, options)
	if s.narrowed(ctx, err) {
		stream, err = s.tryWatch(ctx, options)
	}
	streamed := options.SendInitialEvents != nil
	switch {
	case err == nil:
		return stream, nil
	case streamed && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		s.failures.log.Log(ctx, levelDebug, "the server does not stream lists; listing", "error", err)
	case !streamed && isExpired(err):
		s.expiredWatch(ctx, err)
	default:
		err = s.rejected(ctx, options, err)
	}
	switch {
	case streamed && pauses(err):
		err = s.fallBack(err)
	case utilnet.IsConnectionRefused(err):
		err = permanent{err} // client-go would go on at its version, which may be one of another history
	}
	return nil, err
}

// mayGoOn returns an error where a watch cannot go on at its version, or where
// that is not known.
func (s *source) mayGoOn(ctx context.Context, options metav1.ListOptions) error {
	err := s.restored(ctx, options)
	if err == nil {
		return nil
	}
	s.failures.record(ctx, err)
	if apierrors.IsTooManyRequests(err) {
		return err // client-go pauses, and asks for the watch again
	}
	return permanent{err}
}

// errRestored is for the LastWatchError; client-go lists again after it.
var errRestored = errors.New("the server has an older state than was watched, as after the restore of a backup")

// restored returns an error where the server is behind the version at which a
// watch continues. The server would accept the watch, send nothing until it
// has reached that version again, and never send what was written before. To
// look costs a list of one object, and is done after a silence only. After refused
// connections, everything is listed again: a server that has reached that
// version already looks like one that was not restored.
func (s *source) restored(ctx context.Context, options metav1.ListOptions) error {
	if options.SendInitialEvents != nil || !s.maybeRestored.Load() {
		return nil
	}
	list, err := s.tryList(ctx, metav1.ListOptions{Limit: 1})
	if pauses(err) {
		return err
	}
	if err == nil { // else the watch may be possible all the same
		s.maybeRestored.Store(false)
		if isEarlier(list.GetResourceVersion(), options.ResourceVersion) {
			return errRestored
		}
	}
	return nil
}

// isEarlier reports whether a resourceVersion is earlier than another one.
// Where the two have no order, nothing is known, and it is not.
func isEarlier(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// pauses reports whether client-go pauses after this error, for up to a minute.
// After that of a streamed list, it does not look at the context.
func pauses(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// fallBack makes client-go list instead, by the error that it returns, and that
// list fail with the given one, without a request. After that, client-go pauses
// as long, but not longer than the context lasts, and streams the list again.
func (s *source) fallBack(err error) error {
	s.refusal.Store(&err)
	return errRefused
}

func (s *source) tryWatch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	requestCtx, request := newAttempt(ctx, watchLimit, watchLimit)
	s.limit(&options)
	stream, err := s.client.Resource(s.resource).Namespace(s.namespace).Watch(listen(requestCtx, request.lose), options)
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
	s.failures.log.Log(ctx, levelDebug, "the server does not select by this field; selecting here", "fields", s.fields.wide, "error", err)
	return true
}
