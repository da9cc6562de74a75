package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// EventLister calls use with the namespace and name of each Event of a page, and returns the token of the next one; outbox.Client does.
type EventLister interface {
	Names(ctx context.Context, namespace string, o metav1.ListOptions, use func(namespace, name string)) (next string, err error)
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
	use := func(namespace, name string) { names[state.DigestOf(namespace+"/"+name)] = true }
	for {
		next, err := l.page(ctx, namespace, options, use)
		if err != nil || next == "" {
			return err
		}
		options.Continue = next
	}
}

// page lists one page of Events, more than once where that fails.
func (l eventList) page(ctx context.Context, namespace string, o metav1.ListOptions, use func(namespace, name string)) (string, error) {
	wait := time.Second
	for try := 1; ; try++ {
		next, err := l.once(ctx, namespace, o, use)
		if err == nil {
			return next, nil
		}
		if try == listTries || slices.ContainsFunc([]func(error) bool{
			apierrors.IsForbidden, apierrors.IsResourceExpired, apianswer.NotFound, apierrors.IsBadRequest,
		}, func(is func(error) bool) bool { return is(err) }) {
			return "", fmt.Errorf("list Events: %w", err)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(wait):
		}
		wait *= 2
	}
}

func (l eventList) once(ctx context.Context, namespace string, o metav1.ListOptions, use func(namespace, name string)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	return l.api.Names(ctx, namespace, o, use)
}
