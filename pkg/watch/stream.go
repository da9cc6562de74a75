package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

var errNoBookmarks = fmt.Errorf("the stream has sent nothing for %s, not even bookmarks", silence)

// errShort is client-go's reading of such a stream, too: it lists again. It does so without a word where the stream has sent the initial
// list.
var errShort = errors.New("the server closed the watch at once, without an event")

// observed is a stream whose objects are prepared and selected, whose errors
// are recorded, and which ends when it is silent for too long.
type observed struct {
	watch.Interface

	source  *source
	request *attempt
	options metav1.ListOptions
	events  chan watch.Event
	done    chan struct{}
	once    sync.Once

	// began is when the watch began: with the stream, or at the end of the initial list that it has sent.
	began time.Time
	// received is when the stream has last sent an event; zero if it has not.
	received time.Time
	// delivered: the stream has sent an event of an object since the watch began; bookmarked: it has sent a bookmark.
	delivered, bookmarked bool
	// listing: the stream is still to send the initial list to its end.
	listing bool
	// failed: the stream has sent an error, which says more than its end.
	failed bool
}

func (s *source) observe(ctx context.Context, request *attempt, stream watch.Interface, options metav1.ListOptions) watch.Interface {
	o := &observed{
		Interface: stream, source: s, request: request, options: options,
		// The buffer lets the streamed list of many objects pass in batches.
		events: make(chan watch.Event, 256), done: make(chan struct{}),
		began: time.Now(), listing: options.SendInitialEvents != nil && *options.SendInitialEvents,
	}
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

// forward ends with the stream, its Stop, its silence or the context, whichever
// comes first.
func (o *observed) forward(ctx context.Context) {
	defer close(o.events)
	defer o.request.cancel(nil)
	silent := time.NewTimer(silence)
	defer silent.Stop()
	for {
		silent.Reset(silence) // what takes time here is no silence of the server
		select {
		case event, open := <-o.Interface.ResultChan():
			if !open {
				o.closed(ctx)
				return
			}
			o.received = time.Now()
			if !o.send(ctx, o.inspect(ctx, event)) {
				return
			}
		case <-silent.C:
			o.silent(ctx)
			return
		case <-o.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (o *observed) send(ctx context.Context, event watch.Event) bool {
	select {
	case o.events <- event:
		return true
	case <-o.done:
		return false
	case <-ctx.Done():
		return false
	}
}

// closed records a stream that did not just end. What it reports after Stop is
// the echo of its closing. The client's transport may end a silent one earlier.
func (o *observed) closed(ctx context.Context) {
	connectionError := o.request.connectionError()
	if time.Since(o.began) > unheard && time.Since(o.received) > unheard {
		o.source.maybeRestored.Store(true)
	}
	o.resetShort()
	switch {
	case o.failed, o.stopped():
	case o.listing:
		o.listInstead(ctx, "the stream ended within the initial list", connectionError)
	case connectionError != nil:
		o.source.failures.record(ctx, fmt.Errorf("the watch broke: %w", connectionError))
	case o.isShort() && !o.bookmarked:
		o.source.failures.record(ctx, errShort)
	case o.isShort():
		if o.source.endedShort() { // else the server may just have ended
			o.listInstead(ctx, errShort.Error(), nil)
		}
	default:
		o.source.failures.log.Log(ctx, levelDebug, "watch closed")
	}
}

// resetShort ends the count of short watches at the end of one that was none.
func (o *observed) resetShort() {
	if !o.listing && !o.isShort() {
		o.source.short.Store(0)
	}
}

// isShort reports whether the watch has just begun, and sent no event of an object.
func (o *observed) isShort() bool {
	return !o.delivered && time.Since(o.began) < atOnce
}

// silent ends a stream, so that the informer opens another where this one was:
// if the server is there, that costs two requests.
func (o *observed) silent(ctx context.Context) {
	o.source.maybeRestored.Store(true)
	o.source.short.Store(0)
	switch {
	case o.listing:
		o.listInstead(ctx, fmt.Sprintf("the server has sent nothing of the initial list for %s", silence), nil)
	case o.source.bookmarks.Load():
		o.source.failures.record(ctx, errNoBookmarks)
	default:
		o.source.failures.log.Log(ctx, levelDebug, "watch silent; opening it again")
	}
}

// listInstead ends a stream with an error event: client-go would ask for the next
// one at once and for ever, after a streamed list that just ends or a watch that
// has sent a bookmark only. It lists, or pauses, after an error.
func (o *observed) listInstead(ctx context.Context, reason string, connectionError error) {
	if connectionError != nil {
		reason += ": " + connectionError.Error()
	}
	o.send(ctx, o.giveUp(ctx, reason))
}

// giveUp records a reason and returns the error event with it.
func (o *observed) giveUp(ctx context.Context, reason string) watch.Event {
	o.failed = true
	status := apierrors.NewTimeoutError(reason, 0)
	o.source.failures.record(ctx, status)
	return watch.Event{Type: watch.Error, Object: &status.ErrStatus}
}

// inspect prepares the object of an event. One that is not selected is deleted:
// the informer may have an earlier state of it, and must learn the version.
func (o *observed) inspect(ctx context.Context, event watch.Event) watch.Event {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		o.delivered = true
		if object, ok := event.Object.(*unstructured.Unstructured); ok {
			o.source.prepare(object)
			if !o.source.selects(object) {
				event.Type = watch.Deleted
			}
		}
	case watch.Error:
		event.Object = o.fail(ctx, event.Object)
	case watch.Bookmark:
		return o.bookmark(ctx, event)
	}
	return event
}

// fail records the error of a stream and returns what client-go is to see of it.
func (o *observed) fail(ctx context.Context, status runtime.Object) runtime.Object {
	first := !o.failed
	o.failed = true
	if o.stopped() {
		return status
	}
	o.resetShort()
	err := apierrors.FromObject(status)
	switch {
	case !isExpired(err):
		o.source.failures.record(ctx, err)
		if o.listing && first && pauses(err) {
			return &apierrors.NewInternalError(o.source.fallBack(err)).ErrStatus
		}
	case o.listing:
		if seen := o.source.rejected(ctx, o.options, err); !isExpired(seen) {
			return &apierrors.NewInternalError(seen).ErrStatus
		}
	case o.isShort():
		o.source.expiredWatch(ctx, err)
	default:
		o.source.failures.expired(ctx, err)
	}
	return status
}

// bookmark gives up an initial list that does not come. The API server marks the
// first bookmark as its end: one that sends another before has taken the request
// for that of a watch.
func (o *observed) bookmark(ctx context.Context, event watch.Event) watch.Event {
	object, err := meta.Accessor(event.Object)
	switch {
	case err != nil:
	case object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
		o.listing, o.began, o.delivered, o.bookmarked = false, time.Now(), false, false
	case o.listing:
		return o.giveUp(ctx, "the server has sent a bookmark before the end of the initial list; it may not stream lists")
	default:
		o.bookmarked = true
		o.source.bookmarks.Store(true)
	}
	return event
}
