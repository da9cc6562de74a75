package listwatch

import (
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// initialSilence is how long the server may send nothing while it streams a list: it has the objects in memory. Until they are all
// there, nothing is known of them, while a list may come through a proxy that holds a stream back.
const initialSilence = 30 * time.Second

// initialList is a streamed list: a watch that first sends what is there, to a bookmark. After one that ends before that, client-go
// asks for the next at once, and for ever; after an error it lists instead.
type initialList struct {
	watch.Interface

	canExpire bool
	events    chan watch.Event
	done      chan struct{}
	stop      sync.Once
}

func newInitialList(w watch.Interface, canExpire bool) *initialList {
	i := &initialList{Interface: w, canExpire: canExpire, events: make(chan watch.Event), done: make(chan struct{})}
	go i.forward()
	return i
}

// ResultChan replaces the embedded one.
func (i *initialList) ResultChan() <-chan watch.Event { return i.events }

// Stop may be called more than once.
func (i *initialList) Stop() {
	i.stop.Do(func() { close(i.done) })
	i.Interface.Stop()
}

// forward passes events on until the stream ends, or is stopped. An error takes the place of the end where the list is incomplete.
func (i *initialList) forward() {
	defer close(i.events)
	silent := time.NewTimer(initialSilence)
	defer silent.Stop()
	for listing := true; ; {
		select {
		case event, open := <-i.Interface.ResultChan():
			if !open && listing {
				i.send(incomplete("the stream ended within the initial list"))
			}
			if listing {
				event = i.check(event)
			}
			if !open || !i.send(event) {
				return
			}
			if listing = listing && !endsList(event); listing {
				silent.Reset(initialSilence)
			} else {
				silent.Stop()
			}
		case <-silent.C:
			i.send(incomplete(fmt.Sprintf("the server has sent nothing of the initial list for %s", initialSilence)))
			return
		case <-i.done:
			return
		}
	}
}

// check replaces what the reflector does not take for the failure of a list. After the error of an expired version, it would ask for the
// next stream at once, also where there is no version. A bookmark does not count to it: the API server marks the first one as the end of
// the list, and one that sends another before has taken the request for that of a watch.
func (i *initialList) check(event watch.Event) watch.Event {
	if event.Type == watch.Bookmark && !endsList(event) {
		return incomplete("the server has sent a bookmark before the end of the initial list; it may not stream lists")
	}
	if event.Type != watch.Error || i.canExpire {
		return event
	}
	if err := apierrors.FromObject(event.Object); isExpired(err) {
		event.Object = &apierrors.NewInternalError(err).ErrStatus
	}
	return event
}

// send reports whether the event was taken, and the stream goes on.
func (i *initialList) send(event watch.Event) bool {
	select {
	case i.events <- event:
		return true
	case <-i.done:
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
