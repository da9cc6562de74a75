package reload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/pod-reloader/pod-reloader/pkg/event"
)

// catchUp knows which reloads of the time before this process leads have an Event, and which workloads wait for that. It is
// safe for concurrent use.
type catchUp struct {
	mu     sync.Mutex
	listed bool
	// names are digests of the namespaces and names of the Events that exist.
	names map[uint64]bool
	// waiting are the workloads that have reloads from before, in order.
	waiting []Key
	waits   map[Key]bool
}

// exists reports whether there is an Event, and whether that is known yet.
func (c *catchUp) exists(namespace, name string) (exists, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[digestOf(namespace+"/"+name)], c.listed
}

// await has a workload looked at again when the Events are listed. It returns false if they are.
func (c *catchUp) await(key Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listed {
		return false
	}
	if !c.waits[key] {
		if c.waits == nil {
			c.waits = map[Key]bool{}
		}
		c.waits[key] = true
		c.waiting = append(c.waiting, key)
	}
	return true
}

// finish ends the wait.
func (c *catchUp) finish(names map[uint64]bool) []Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting
	c.listed, c.names, c.waiting, c.waits = true, names, nil, nil
	return waiting
}

// forget frees what nothing asks for any more: all reloads from before are too old.
func (c *catchUp) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = nil
}

// eventLister lists Events; outbox.Client does.
type eventLister interface {
	List(ctx context.Context, namespace string, o metav1.ListOptions) (*eventsv1.EventList, error)
}

const (
	// eventsPage is how many Events are listed in a request.
	eventsPage = 500
	// pageLimit is how long one request may take, listTries how often it is made.
	pageLimit = 30 * time.Second
	listTries = 4
)

// report lists the Events of earlier leaders once, and has the reloads reported that have none. Where the list fails each
// Event is written: that one exists is then known by the API server's refusal.
func (l *loop) report(ctx context.Context) error {
	names, err := l.reportedReloads(ctx)
	if err != nil && ctx.Err() == nil {
		l.log.Info("Cannot list the Events that exist; those of all reloads of the last 50 minutes are written again, which does not double them",
			"error", err.Error())
	}
	l.add(priorityWorkload, l.catchUp.finish(names)...)
	select {
	case <-ctx.Done():
	case <-time.After(reportedFor):
		l.catchUp.forget()
		<-ctx.Done()
	}
	return nil
}

// reportedReloads returns the Events about reloads that exist.
func (l *loop) reportedReloads(ctx context.Context) (map[uint64]bool, error) {
	namespaces := l.opts.Scope.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	names := map[uint64]bool{}
	for _, namespace := range namespaces {
		if err := l.listReloads(ctx, namespace, names); err != nil {
			return names, err
		}
	}
	return names, nil
}

// listReloads adds the Events of a namespace.
func (l *loop) listReloads(ctx context.Context, namespace string, names map[uint64]bool) error {
	options := metav1.ListOptions{
		Limit: eventsPage,
		FieldSelector: fields.Set{
			"reason": reasonReloaded, "reportingController": event.Controller,
		}.String(),
	}
	for {
		page, err := l.listPage(ctx, namespace, options)
		if err != nil {
			return err
		}
		for n := range page.Items {
			names[digestOf(page.Items[n].Namespace+"/"+page.Items[n].Name)] = true
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// listPage lists one page of Events, more than once where that fails.
func (l *loop) listPage(ctx context.Context, namespace string, o metav1.ListOptions) (*eventsv1.EventList, error) {
	wait := time.Second
	for try := 1; ; try++ {
		page, err := l.listOnce(ctx, namespace, o)
		if err == nil {
			return page, nil
		}
		if try == listTries || slices.ContainsFunc([]func(error) bool{
			apierrors.IsForbidden, apierrors.IsResourceExpired, apierrors.IsNotFound, apierrors.IsBadRequest,
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

func (l *loop) listOnce(ctx context.Context, namespace string, o metav1.ListOptions) (*eventsv1.EventList, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	return l.lister.List(ctx, namespace, o)
}
