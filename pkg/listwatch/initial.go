package listwatch

import (
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// initialSilence is how long the server may send nothing while it streams a list: it has the objects in memory. Until they are all
// there, nothing is known of them, while a list may come through a proxy that holds a stream back.
const initialSilence = 30 * time.Second

// checked is a watch that replaces events which the reflector would not take for a failure, or would not report.
//
// One of a streamed list first sends what is there, to a bookmark. After one that ends before that, the reflector asks for the next at
// once, and for ever; after an error it lists instead.
type checked struct {
	watch.Interface

	// listing: the initial list is still to come to its end. canExpire: it is at a version.
	listing, canExpire bool
	// busy is called for the error that there are too many requests, before it is passed on.
	busy   func(error)
	events chan watch.Event
	done   chan struct{}
	stop   sync.Once
}

func newChecked(w watch.Interface, listing, canExpire bool, busy func(error)) *checked {
	c := &checked{
		Interface: w, listing: listing, canExpire: canExpire, busy: busy, events: make(chan watch.Event), done: make(chan struct{}),
	}
	go c.forward()
	return c
}

// ResultChan replaces the embedded one.
func (c *checked) ResultChan() <-chan watch.Event { return c.events }

// Stop may be called more than once.
func (c *checked) Stop() {
	c.stop.Do(func() { close(c.done) })
	c.Interface.Stop()
}

// forward passes events on until the stream ends, or is stopped. An error takes the place of the end where the list is incomplete.
func (c *checked) forward() {
	defer close(c.events)
	silent := time.NewTimer(initialSilence)
	defer silent.Stop()
	for {
		if c.listing {
			silent.Reset(initialSilence)
		} else {
			silent.Stop()
		}
		select {
		case event, open := <-c.Interface.ResultChan():
			if !open && c.listing {
				c.send(incomplete("the stream ended within the initial list"))
			}
			if !open || !c.send(c.check(event)) {
				return
			}
		case <-silent.C:
			c.send(incomplete(fmt.Sprintf("the server has sent nothing of the initial list for %s", initialSilence)))
			return
		case <-c.done:
			return
		}
	}
}

// check replaces what the reflector does not take for the failure of a list. A bookmark does not count to it: the API server marks the
// first one as the end of the list, and one that sends another before has taken the request for that of a watch.
func (c *checked) check(event watch.Event) watch.Event {
	switch {
	case event.Type == watch.Error:
		event.Object = c.fail(event.Object)
	case endsList(event):
		c.listing = false
	case event.Type == watch.Bookmark && c.listing:
		return incomplete("the server has sent a bookmark before the end of the initial list; it may not stream lists")
	}
	return event
}

// fail returns what the reflector is to see of an error. After that of an expired version within a list, it would ask for the next stream
// at once, also where there is no version. After too many requests it would pause, and not look at the context.
func (c *checked) fail(status runtime.Object) runtime.Object {
	err := apierrors.FromObject(status)
	busy := apierrors.IsTooManyRequests(err)
	if busy {
		c.busy(err)
	}
	if c.listing && (busy || isExpired(err) && !c.canExpire) {
		return &apierrors.NewInternalError(err).ErrStatus
	}
	return status
}

// send reports whether the event was taken, and the stream goes on.
func (c *checked) send(event watch.Event) bool {
	select {
	case c.events <- event:
		return true
	case <-c.done:
		return false
	}
}

func incomplete(reason string) watch.Event {
	return watch.Event{Type: watch.Error, Object: &apierrors.NewTimeoutError(reason, 0).ErrStatus}
}

// endsList reports whether an event is the bookmark behind the initial events.
func endsList(event watch.Event) bool {
	if event.Type != watch.Bookmark {
		return false
	}
	object, err := meta.Accessor(event.Object)
	return err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
