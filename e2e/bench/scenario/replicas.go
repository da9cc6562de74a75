package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// withArgs runs something with replicas that have further flags, in place of the others.
func (e *environment) withArgs(
	ctx context.Context, args []string, run func(context.Context) ([]figure.Figure, error),
) ([]figure.Figure, error) {
	if err := e.replaceReplicas(ctx, args); err != nil {
		return nil, err
	}
	figures, err := run(ctx)
	return figures, errors.Join(err, e.replaceReplicas(ctx, nil))
}

// replaceReplicas is a rolling update to other flags. A replica that serves profiles ends before the next one needs its address.
func (e *environment) replaceReplicas(ctx context.Context, args []string) error {
	for _, old := range e.installation.Replicas() {
		add := func() error {
			_, err := e.installation.AddReplica(ctx, installation.ReplicaOptions{Args: args})
			return err
		}
		remove := func() error { return e.installation.RemoveReplica(ctx, old) }
		steps := []func() error{add, remove}
		if e.profiler.enabled() {
			steps = []func() error{remove, add}
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceLeader stops the leader, as an upgrade does, and starts it again when another leads and some things are done.
func (e *environment) replaceLeader(ctx context.Context, first ...func(context.Context) error) error {
	leader, err := e.installation.Leader(ctx)
	if err != nil {
		return err
	}
	if err := leader.Stop(ctx); err != nil {
		return err
	}
	if _, err := e.installation.Leader(ctx); err != nil {
		return err
	}
	for _, do := range first {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return e.installation.StartAll(ctx)
}

// starting is how long a start took.
type starting struct{ ready, caughtUp time.Duration }

// measureStart starts pod-reloader, and waits until the template of a workload has changed so many times in all. The last of these changes
// is the one that pod-reloader missed. It is ready when its caches are filled and what else must be waited for has happened.
func (e *environment) measureStart(
	ctx context.Context, probe observe.Workload, changes int, more ...func(context.Context) error,
) (starting, error) {
	began := time.Now()
	for _, wait := range append([]func(context.Context) error{e.installation.StartAll, e.awaitSynced}, more...) {
		if err := wait(ctx); err != nil {
			return starting{}, err
		}
	}
	ready := time.Since(began)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	all, err := e.watcher.AwaitTemplateChanges(ctx, probe, changes)
	if err != nil {
		return starting{}, err
	}
	return starting{ready, max(ready, all[changes-1].Time.Sub(began))}, e.awaitSettled(ctx)
}

// awaitSynced waits until the one replica is ready and its caches are filled.
func (e *environment) awaitSynced(ctx context.Context) error {
	return await(ctx, "filled caches", 10*time.Millisecond, 2*time.Minute, func(ctx context.Context) error {
		metrics, err := e.installation.Replicas()[0].Metrics(ctx)
		if err != nil {
			return err
		}
		if metrics.Sum("pod_reloader_cache_synced") != 1 || metrics.Sum("leader_election_master_status") != 1 {
			return fmt.Errorf("it does not lead yet, or its caches are not filled")
		}
		return nil
	})
}

// residentMemory is how many megabytes the one replica holds, once it has seen everything that there is.
func (e *environment) residentMemory(ctx context.Context) (float64, error) {
	if err := e.awaitSynced(ctx); err != nil {
		return 0, err
	}
	if err := e.awaitSettled(ctx); err != nil {
		return 0, err
	}
	const apart = 250 * time.Millisecond
	var found []int64
	for range e.Looks {
		bytes, err := e.installation.Replicas()[0].ResidentMemory()
		if err != nil {
			return 0, err
		}
		found = append(found, bytes)
		if err := pause(ctx, apart); err != nil {
			return 0, err
		}
	}
	peak, err := e.installation.Replicas()[0].PeakMemory()
	if err != nil {
		return 0, err
	}
	if err := e.profiler.heap(ctx, fmt.Sprintf("%s-heap-%.0fMB", e.name, megabytes(median(found)))); err != nil {
		return 0, err
	}
	e.say("resident %.1f MB, peak %.1f MB", megabytes(median(found)), megabytes(peak))
	return megabytes(median(found)), nil
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
