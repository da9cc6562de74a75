package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// EventLister lists Events; outbox.Client does.
type EventLister interface {
	List(ctx context.Context, namespace string, o metav1.ListOptions) (*eventsv1.EventList, error)
}

const (
	// eventsPage is how many Events are listed in a request.
	eventsPage = 500
	// pageLimit is how long one request may take, listTries how often it is made.
	pageLimit = 30 * time.Second
	listTries = 4
)

// eventList lists the Events about reloads that exist.
type eventList struct {
	api EventLister
	// namespaces are where to look; none means all.
	namespaces []string
}

// reloads returns the digests of the namespaces and names of the Events about reloads.
func (l eventList) reloads(ctx context.Context) (map[uint64]bool, error) {
	namespaces := l.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	names := map[uint64]bool{}
	for _, namespace := range namespaces {
		if err := l.add(ctx, namespace, names); err != nil {
			return names, err
		}
	}
	return names, nil
}

// add adds the Events of a namespace.
func (l eventList) add(ctx context.Context, namespace string, names map[uint64]bool) error {
	options := metav1.ListOptions{
		Limit: eventsPage,
		FieldSelector: fields.Set{
			"reason": reasonReloaded, "reportingController": event.Controller,
		}.String(),
	}
	for {
		page, err := l.page(ctx, namespace, options)
		if err != nil {
			return err
		}
		for n := range page.Items {
			names[state.DigestOf(page.Items[n].Namespace+"/"+page.Items[n].Name)] = true
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// page lists one page of Events, more than once where that fails.
func (l eventList) page(ctx context.Context, namespace string, o metav1.ListOptions) (*eventsv1.EventList, error) {
	wait := time.Second
	for try := 1; ; try++ {
		page, err := l.once(ctx, namespace, o)
		if err == nil {
			return page, nil
		}
		if try == listTries || slices.ContainsFunc([]func(error) bool{
			apierrors.IsForbidden, apierrors.IsResourceExpired, apianswer.NotFound, apierrors.IsBadRequest,
		}, func(is func(error) bool) bool { return is(err) }) {
			return nil, fmt.Errorf("list Events: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
		wait *= 2
	}
}

func (l eventList) once(ctx context.Context, namespace string, o metav1.ListOptions) (*eventsv1.EventList, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	return l.api.List(ctx, namespace, o)
}
