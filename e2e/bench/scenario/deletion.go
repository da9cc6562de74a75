package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/bench/model"
)

// deletion: a ConfigMap that all workloads of a namespace track is deleted, and created again with the content that it had. Nothing
// restarts. The processor time is compared with that of a tenth of the workloads, on the same model of an API server as for huge.
func deletion(ctx context.Context, e *environment) ([]figure.Figure, error) {
	few, err := deletions(ctx, e, e.Tracking/10)
	if err != nil {
		return nil, err
	}
	many, err := deletions(ctx, e, e.Tracking)
	if err != nil {
		return nil, err
	}
	return []figure.Figure{
		{
			Name: fmt.Sprintf("deletion of an object that %d workloads track: processor time", e.Tracking), Unit: figure.Milliseconds,
			Value: milliseconds(many.used), Floor: milliseconds(few.used), Budget: figure.Times(13),
			Note: fmt.Sprintf("with its creation after that, mean of %d; the floor is with a tenth of the workloads", e.Deletions),
		},
		missedOrDoubled(few.off + many.off),
	}, nil
}

// deleted is what deletions cost.
type deleted struct {
	// used is the processor time of one deletion and one creation.
	used time.Duration
	// off is how many writes were too few or too many.
	off int
}

// deletions deletes and creates the ConfigMap that so many workloads track.
func deletions(ctx context.Context, e *environment, workloads int) (found deleted, err error) {
	m, process, err := e.startModel(ctx, model.Cluster{Workloads: workloads, Shared: true}, settings{})
	if err != nil {
		return deleted{}, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	defer process.Kill()
	before, err := process.atRest(ctx, quiet)
	if err != nil {
		return deleted{}, err
	}
	for range e.Deletions {
		m.DeleteShared()
		if _, err := process.atRest(ctx, quiet); err != nil {
			return deleted{}, err
		}
		if err := m.StoreShared(); err != nil {
			return deleted{}, err
		}
		if _, err := process.atRest(ctx, quiet); err != nil {
			return deleted{}, err
		}
	}
	after, err := process.atRest(ctx, quiet)
	if err != nil {
		return deleted{}, err
	}
	found.used = (after - before) / time.Duration(e.Deletions)
	// The barrier: what a deletion or a creation has restarted was written before this change.
	if err := m.Change(0); err != nil {
		return deleted{}, err
	}
	if err := m.Await(ctx); err != nil {
		return deleted{}, fmt.Errorf("change behind the deletions: %w\n%s", err, process.LogEnd())
	}
	found.off = max(m.Written()-model.Probes-1, 0)
	e.say("%d workloads: %s for a deletion and a creation", workloads, found.used.Round(time.Millisecond))
	return found, nil
}
