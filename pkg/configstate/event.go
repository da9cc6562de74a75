package configstate

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// EventType is what happened to a config object.
type EventType string

// The types of events. A re-created object that is delivered as an update, with another UID, counts as Modified.
const (
	Added    EventType = "Added"
	Modified EventType = "Modified"
	Deleted  EventType = "Deleted"
)

// Event says that a config object has changed: some of its metadata for sure, its content perhaps.
type Event struct {
	// Namespace is empty where the object is in none: workloads of every namespace can track it.
	Namespace string
	Ref       reference.Ref
	Type      EventType
	// ResourceVersion is that of the write that the event reports; empty where it is not known.
	ResourceVersion string
	// Received is when the event arrived here: latencies are counted from it.
	Received time.Time
	// Initial is set for what was found before the Store as a whole was synced. A handler that looks at everything once the Store is
	// synced can pass over it.
	Initial bool
}

// notifier calls the handlers of events. It has no lock: the handlers are fixed before the watches run.
type notifier struct {
	now      func() time.Time
	handlers []func(Event)
}

// add registers a handler.
func (n *notifier) add(handler func(Event)) { n.handlers = append(n.handlers, handler) }

// notify calls the handlers, one after the other. The caller holds no lock of a cache: handlers may read what is cached.
func (n *notifier) notify(event Event) {
	for _, handler := range n.handlers {
		handler(event)
	}
}
