package watch

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// inbox is what a Single's informer tells its callbacks: that there is
// something to look at. The state itself is read from the cache then, which is
// never behind the events. So nothing piles up while a callback blocks.
type inbox struct {
	wake chan struct{} // holds one token: there may be something to deliver

	mu       sync.Mutex
	synced   bool // else changes are dropped
	announce bool // the sync is to be announced
	changed  bool
}

// put notes a change; before sync, it is dropped.
func (i *inbox) put() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.synced {
		i.changed = true
		i.signal()
	}
}

// open begins to accept changes; mark runs in the same moment.
func (i *inbox) open(mark func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.synced, i.announce = true, true
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
func (i *inbox) take() (announce, changed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	announce, changed = i.announce, i.changed
	i.announce, i.changed = false, false
	return announce, changed
}

// callBack makes the callbacks, on its goroutine, until the context ends.
func (s *Single) callBack(ctx context.Context) {
	var shown *unstructured.Unstructured
	known := false // whether anything was shown
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.inbox.wake:
		}
		if ctx.Err() != nil { // both were ready
			return
		}
		announce, changed := s.inbox.take()
		object := s.Object()
		switch {
		case announce && s.config.OnSyncComplete != nil: // this shows a change that came with it, too
			shown, known = object, true
			s.call(ctx, "OnSyncComplete", s.config.OnSyncComplete, object)
		// What was announced may have been ahead of the events that led to it.
		case changed && s.config.OnChange != nil && (!known || shown != object):
			shown, known = object, true
			s.call(ctx, "OnChange", s.config.OnChange, object)
		}
	}
}

func (s *Single) call(
	ctx context.Context, name string, callback func(context.Context, *unstructured.Unstructured) error, object *unstructured.Unstructured,
) {
	guard(s.log, name, func() error { return callback(ctx, object) })
}
