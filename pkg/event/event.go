// Package event builds Kubernetes Events: their names, which make writing one a second time harmless, and texts of a length
// that the API server takes.
package event

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Controller is the reporting controller of all Events.
const Controller = "pod-reloader"

const (
	// longest is how many bytes a note may have; the API server takes 1024.
	longest = 1000
	// longestName is how many bytes the name of an object may have, longestInstance the reporting instance.
	longestName, longestInstance = 253, 128
)

// Message is what an Event reports.
type Message struct {
	// Type is Normal or Warning.
	Type string
	// Reason and Action are words of at most 128 bytes.
	Reason, Action string
	// Note is cut to the length that the API server takes.
	Note string
	// Regarding is the object that the Event is about. The Event is in its namespace.
	Regarding corev1.ObjectReference
	// Related is another object that it is about; nil if there is none.
	Related *corev1.ObjectReference
	// Time is when it happened.
	Time time.Time
	// Instance names the process that reports it.
	Instance string
}

// Event returns the Event with a name.
func (m Message) Event(name string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: m.Regarding.Namespace, Name: name},
		EventTime:           metav1.NewMicroTime(m.Time),
		ReportingController: Controller,
		ReportingInstance:   m.Instance[:min(len(m.Instance), longestInstance)],
		Action:              m.Action,
		Reason:              m.Reason,
		Regarding:           m.Regarding,
		Related:             m.Related,
		Note:                Note(m.Note),
		Type:                m.Type,
	}
}

// TimeOf returns when what an Event reports was last seen.
func TimeOf(e eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return e.EventTime.Time
}

// Last returns the last one of some Events that has one of the reasons, by the name of the object that it is about.
func Last(events []eventsv1.Event, reasons ...string) map[string]eventsv1.Event {
	last := map[string]eventsv1.Event{}
	for _, e := range events {
		if name := e.Regarding.Name; slices.Contains(reasons, e.Reason) && TimeOf(last[name]).Before(TimeOf(e)) {
			last[name] = e
		}
	}
	return last
}

// Name returns the name of an Event about an object that is made of what distinguishes the Event from all others: the same words
// give the same name, in every process.
func Name(object string, words ...string) string {
	sum := sha256.New()
	for _, word := range words {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(word), word) // it never fails
	}
	suffix := "." + hex.EncodeToString(sum.Sum(nil)[:8])
	object = object[:min(len(object), longestName-len(suffix))]
	return strings.TrimRight(object, "-.") + suffix
}

// Action is the action of an Event that may come again with another text while what it is about stays as it is. client-go
// counts an Event that agrees with an earlier one in reason, action and both objects on that one, whatever it says: the
// second text would be lost. A digest of the text in the action keeps them apart, and still lets it count what is the
// same.
func Action(verb, text string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // it never fails
	return fmt.Sprintf("%s-%08x", verb, sum.Sum32())
}

// Note is a text cut to the length that the API server takes, at a whole character.
func Note(text string) string { return reference.Cut(text, longest) }
