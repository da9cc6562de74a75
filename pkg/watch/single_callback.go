package watch

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// inbox is what a Single's informer passes to its callbacks: the state at sync,
// and later that there is something to look at. That state is read from the
// cache then, which is never behind the events. So nothing piles up while a
// callback blocks.
type inbox struct {
	wake chan struct{} // holds one token: there may be something to deliver

	mu       sync.Mutex
	synced   bool // else changes are dropped
	delivery delivery
}

// delivery is what is to be delivered.
type delivery struct {
	sync    bool                       // OnSyncComplete is due
	state   *unstructured.Unstructured // for OnSyncComplete; nil if the object does not exist
	changed bool                       // OnChange is due
}

// put notes a change; before sync, it is dropped.
func (i *inbox) put() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.synced {
		i.delivery.changed = true
		i.signal()
	}
}

// open keeps the state and begins to accept changes; mark runs in the same
// moment. What changes after mark is a change, and not part of the state.
func (i *inbox) open(state func() *unstructured.Unstructured, mark func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.synced, i.delivery.sync, i.delivery.state = true, true, state()
	mark()
	i.signal()
}

func (i *inbox) signal() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// take empties the inbox.
func (i *inbox) take() delivery {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken := i.delivery
	i.delivery = delivery{}
	return taken
}

// callBack makes the callbacks, on its goroutine, until the context ends.
func (s *Single) callBack(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.inbox.wake:
		}
		if ctx.Err() != nil { // both were ready
			return
		}
		s.deliver(ctx)
	}
}

// deliver makes the callbacks that are due.
func (s *Single) deliver(ctx context.Context) {
	delivery := s.inbox.take()
	if delivery.sync && s.config.OnSyncComplete != nil {
		s.shown, s.known = delivery.state, true
		s.call(ctx, "OnSyncComplete", s.config.OnSyncComplete, delivery.state)
	}
	if !delivery.changed || s.config.OnChange == nil || ctx.Err() != nil {
		return
	}
	object, shown, known := s.Object(), s.shown, s.known
	s.shown, s.known = object, true
	if !known || differs(shown, object) {
		s.call(ctx, "OnChange", s.config.OnChange, object)
	}
}

// differs reports whether a state is to be delivered after another one. That one
// may have been ahead of the events that led to it, and this one be of the same
// version, or have another status only. Each is nil if the object does not exist.
func differs(shown, object *unstructured.Unstructured) bool {
	if shown == nil || object == nil {
		return shown != object
	}
	return !unchanged(shown, object) && !sameGeneration(shown, object)
}

func (s *Single) call(
	ctx context.Context, name string, callback func(context.Context, *unstructured.Unstructured) error, object *unstructured.Unstructured,
) {
	guard(ctx, s.log, name, func() error { return callback(ctx, object) })
}
