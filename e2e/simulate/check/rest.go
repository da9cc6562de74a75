package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

const (
	// lookEvery is how often is looked whether something has changed, and longest how long it may take until nothing does.
	lookEvery, longest = 250 * time.Millisecond, 5 * time.Minute
	// stillLooks is in how many looks nothing must have changed before the program is asked: what controllers do next would have the
	// barrier begin again. Looks are counted, since a machine that stalls changes nothing either.
	stillLooks = 4
	// stuckLooks is in how many looks nothing must have changed where the program has something left to do that it may be unable to, as
	// while a finalizer holds a Job that it has deleted.
	stuckLooks = 40
)

// site is a world that comes to rest.
type site struct {
	// read returns what is stored.
	read func(ctx context.Context, accept string) (stored, error)
	// seen is a barrier: it returns when the program has seen all that happened before the call. A program that reloads nothing any more
	// never gets there: the wait ends with ctx, and fails.
	seen func(ctx context.Context) error
	// undone returns errUndone where the program knows that it has something to do.
	undone func(ctx context.Context) error
}

var errUndone = errors.New("the program has something left to do")

func newSite(p plane, in *installation.Installation) site {
	return site{
		read:   p.read,
		seen:   func(ctx context.Context) error { return in.Seen(ctx) },
		undone: func(ctx context.Context) error { return undone(ctx, in) },
	}
}

// undone names the reloads and Events of all replicas that are due.
func undone(ctx context.Context, in *installation.Installation) error {
	metrics, err := in.Metrics(ctx)
	if err != nil {
		return err
	}
	reloads, events := metrics.Sum("pod_reloader_due_reloads"), metrics.Sum("pod_reloader_pending_events")
	if reloads+events > 0 {
		return fmt.Errorf("%w: %v reloads and %v Events", errUndone, reloads, events)
	}
	return nil
}

// rest waits until nothing changes any more, and the program has nothing left to do, and returns what is stored then. That nothing
// changes for a while does not suffice: the program may be late.
func (s site) rest(ctx context.Context) (stored, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	last, same := "", 0
	var all stored
	err := poll.Until(ctx, "a world at rest", lookEvery, func(ctx context.Context) error {
		versions, err := s.versions(ctx)
		if err != nil {
			return err
		}
		if same++; versions != last {
			last, same = versions, 0
		}
		if same < stillLooks {
			return errors.New("something changes")
		}
		all, err = s.still(ctx, last, same >= stuckLooks)
		return err
	})
	return all, err
}

// still returns what is stored if it has certain versions before and after the barrier, and nothing is left to be done.
func (s site) still(ctx context.Context, versions string, stuck bool) (stored, error) {
	all, err := s.read(ctx, "application/json")
	if err != nil {
		return nil, err
	}
	if all.versions() != versions {
		return nil, errors.New("something changed while all was read")
	}
	if err := all.unfinished(); err != nil {
		return nil, err
	}
	for _, ask := range []func(context.Context) error{s.undone, s.seen, s.undone} { // at first, since the barrier costs more
		if err := ask(ctx); err != nil && (!stuck || !errors.Is(err, errUndone)) {
			return nil, err
		}
	}
	now, err := s.versions(ctx)
	if err == nil && now != versions {
		err = errors.New("something changed before the program had seen everything")
	}
	return all, err
}

// versions are the versions of everything that is stored, as one text.
func (s site) versions(ctx context.Context) (string, error) {
	const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	all, err := s.read(ctx, metadataOnly)
	if err != nil {
		return "", err
	}
	return all.versions(), nil
}
