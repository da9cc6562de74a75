package outbox

import (
	"container/list"
	"time"

	eventsv1 "k8s.io/api/events/v1"
)

// Message is an Event on its way to the API server.
type Message struct {
	Event *eventsv1.Event
	// Subject is what the Event is about; it is in the namespace of the Event. Few messages of one subject wait at a time.
	Subject string
	// Topic is shared by messages of which only the last one of a subject matters: it replaces one that waits. Empty means
	// that nothing replaces the message.
	Topic string
	// Delay is how long the message waits before it is written for the first time.
	Delay time.Duration
	// Life is how long it is worth writing.
	Life time.Duration
	// Repeat: if an Event of this name exists, its count is raised instead.
	Repeat bool
	// Valid is asked right before a delayed message is written; false drops it. nil means that it stays valid.
	Valid func() bool
	// Failed is called after each failed attempt, Done once, when the message has left the outbox. Both may be nil.
	Failed func(error)
	Done   func(Outcome)
}

// Outcome is how a message has left the outbox.
type Outcome string

const (
	// Created means that this process has created the Event, if only by an attempt whose answer was lost.
	Created Outcome = "created"
	// Exists means that an Event of this name exists. Of a message that is not repeated, another process has created it.
	Exists Outcome = "exists"
	// Dropped means that the message was not written: its life has ended, its namespace is gone, or too many of its subject
	// or of its namespace wait.
	Dropped Outcome = "dropped"
)

// item is a message in the outbox.
type item struct {
	Message

	// ends is when its life ends, due when the next attempt may be made, first when the first one could be made.
	ends, due, first time.Time
	// place is where the queue has it among the items without a Topic.
	place    *list.Element
	attempts int
	// unclear says that an attempt had no answer: it may have stored the Event.
	unclear bool
	delayed bool
	// inFlight is set while a request for it is under way, gone when it has left the outbox.
	inFlight, gone bool
	// slow says that the attempt that is under way counts among those of slow queues.
	slow bool
}

func (i *item) failed(err error) {
	if i.Failed != nil {
		i.Failed(err)
	}
}

func (i *item) done(outcome Outcome) {
	if i.Done != nil {
		i.Done(outcome)
	}
}

// later is a heap of items by the time when they are due.
type later []*item

func (h later) Len() int           { return len(h) }
func (h later) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h later) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *later) Push(x any) { *h = append(*h, x.(*item)) }

// Pop is for package heap.
func (h *later) Pop() any {
	last := len(*h) - 1
	i := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return i
}
