package app

import (
	"context"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/pod-reloader/pod-reloader/pkg/event"
)

// inheritTries is how often a new leader asks for the Events of its predecessor where there is no answer.
const inheritTries = 4

// predecessor is what a leader asks, until there is an answer, whether an earlier leader has reported a failure that no Event has ended.
// One goroutine at a time uses it.
type predecessor struct {
	// failing reports whether the last Event about the subject says that it fails.
	failing func(ctx context.Context) (bool, error)

	tries  int
	closed bool
}

// reportedFailing reports, once, that an earlier leader has reported a failure, and no leader its end.
func (p *predecessor) reportedFailing(ctx context.Context, log logr.Logger) bool {
	if p.closed {
		return false
	}
	failing, err := p.failing(ctx)
	p.tries++
	p.closed = err == nil || p.tries == inheritTries || apierrors.IsForbidden(err)
	if err != nil {
		log.V(1).Info("cannot list the Events of an earlier leader", "error", err.Error())
	}
	return err == nil && failing
}

// close ends the questions: an Event of this leader is newer than those of an earlier leader.
func (p *predecessor) close() { p.closed = true }

// eventLister lists Events; outbox.Client does.
type eventLister interface {
	List(ctx context.Context, namespace string, o metav1.ListOptions) (*eventsv1.EventList, error)
}

// lastReport reports whether the last Event on the installation's Deployment with one of two reasons has that of the failure.
func lastReport(events eventLister, namespace, name, failure, end string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, ownReadLimit)
		defer cancel()
		list, err := events.List(ctx, namespace, metav1.ListOptions{FieldSelector: fields.Set{
			"regarding.kind": "Deployment", "regarding.name": name, "reportingController": event.Controller,
		}.String()})
		if err != nil {
			return false, err
		}
		return event.Last(list.Items, failure, end)[name].Reason == failure, nil
	}
}
