package scenario

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// trial is something that must restart each of its workloads a certain number of times.
type trial struct {
	name string
	// workloads is how many there are, each with configMaps of its own.
	workloads, configMaps int
	// do happens to a workload, its number given; all of them at the same time.
	do func(ctx context.Context, t trial, i int) error
	// restarts is the one right number of new templates for each workload.
	restarts int
	// most reports the most that a workload had, rather than how many are off.
	most bool
}

func (t trial) workload(i int) string     { return fmt.Sprintf("%s-%d", t.name, i) }
func (t trial) configMap(i, n int) string { return fmt.Sprintf("%s-%d-%d", t.name, i, n) }
func (t trial) seen(e *environment, i int) observe.Workload {
	return observe.Deployment(e.name, t.workload(i))
}

// burst: what must be one rollout, and what must be none, as shipped.
func burst(ctx context.Context, e *environment) ([]figure.Figure, error) {
	if err := e.createWatchedNamespace(ctx); err != nil {
		return nil, err
	}
	trials := e.trials()
	for _, t := range trials {
		if err := e.prepare(ctx, t); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if err := e.settled(ctx); err != nil {
		return nil, err
	}
	if err := e.try(ctx, trials); err != nil {
		return nil, err
	}
	figures := make([]figure.Figure, 0, len(trials))
	for _, t := range trials {
		figures = append(figures, t.figure(e))
	}
	return figures, nil
}

// try makes everything happen, one trial after the other, and waits: first for all that must happen, then until nothing
// is left to do.
func (e *environment) try(ctx context.Context, trials []trial) error {
	for _, t := range trials {
		err := parallel(ctx, t.workloads, func(ctx context.Context, i int) error { return t.do(ctx, t, i) })
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, t := range trials {
		for i := range t.workloads {
			if _, err := e.watcher.AwaitTemplateChanges(waiting, t.seen(e, i), t.restarts); err != nil {
				e.say("%v", err) // the figure shows it
			}
		}
	}
	if err := e.settled(ctx); err != nil {
		return err
	}
	return e.watcher.Sync(ctx)
}

// prepare creates the workloads of a trial with their configuration.
func (e *environment) prepare(ctx context.Context, t trial) error {
	return parallel(ctx, t.workloads, func(ctx context.Context, i int) error {
		d := deployment{name: t.workload(i)}
		for n := range t.configMaps {
			d.configMaps = append(d.configMaps, t.configMap(i, n))
			if err := e.configMap(ctx, t.configMap(i, n)); err != nil {
				return err
			}
		}
		_, err := e.deploy(ctx, d)
		return err
	})
}

// figure counts new templates, and ReplicaSets: a rollout is whichever there were more of.
func (t trial) figure(e *environment) figure.Figure {
	off, most := 0, 0
	for i := range t.workloads {
		workload := t.seen(e, i)
		rollouts := max(len(e.watcher.Changes(workload)), e.watcher.ReplicaSets(workload)-1)
		most = max(most, rollouts)
		if rollouts != t.restarts {
			off++
			e.say("%s: %s was rolled out %d times: %v", t.name, workload, rollouts, e.watcher.Changes(workload))
		}
	}
	if t.most {
		return figure.Figure{Name: t.name, Value: float64(most), Budget: figure.Exactly(float64(t.restarts))}
	}
	return figure.Figure{Name: t.name, Value: float64(off), Budget: figure.Exactly(0)}
}

func (e *environment) trials() []trial {
	return []trial{
		{
			name: "ten-configmaps-at-once", workloads: e.Bursts, configMaps: 10, restarts: 1, most: true, do: e.tenAtOnce,
		},
		{name: "metadata-edits-spurious-rollouts", workloads: 1, configMaps: 1, do: e.editMetadata, most: true},
		{name: "releases-rolled-twice", workloads: e.Releases, configMaps: 1, restarts: 1, do: e.release},
		{name: "re-applies-spurious-rollouts", workloads: 1, configMaps: 1, do: e.reapply, most: true},
		{name: "changes-missed-or-doubled", workloads: e.Changes, configMaps: 1, restarts: 1, do: e.changeOnce},
	}
}

// tenAtOnce changes all ConfigMaps of a workload at the same time.
func (e *environment) tenAtOnce(ctx context.Context, t trial, i int) error {
	return parallel(ctx, t.configMaps, func(ctx context.Context, n int) error { return e.change(ctx, t.configMap(i, n), 1) })
}

// editMetadata edits labels and annotations of a ConfigMap.
func (e *environment) editMetadata(ctx context.Context, t trial, i int) error {
	for n := range e.Edits {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"edit":"%d"},"annotations":{"edit":"%d"}}}`, n, n)
		if err := e.merge(ctx, &corev1.ConfigMap{}, t.configMap(i, 0), patch); err != nil {
			return err
		}
	}
	return nil
}

// release changes configuration, then the workload.
func (e *environment) release(ctx context.Context, t trial, i int) error {
	if err := e.change(ctx, t.configMap(i, 0), 1); err != nil {
		return err
	}
	return e.merge(ctx, &appsv1.Deployment{}, t.workload(i), `{"spec":{"template":{"metadata":{"annotations":{"release":"2"}}}}}`)
}

// reapply replaces a workload by its manifest, which has none of pod-reloader's annotations.
func (e *environment) reapply(ctx context.Context, t trial, i int) error {
	for range e.Applies {
		manifest := deployment{name: t.workload(i), configMaps: []string{t.configMap(i, 0)}}.object(e.name)
		if err := e.Update(ctx, manifest); err != nil {
			return fmt.Errorf("replace %s: %w", t.workload(i), err)
		}
	}
	return nil
}

// changeOnce changes the one ConfigMap of a workload.
func (e *environment) changeOnce(ctx context.Context, t trial, i int) error {
	return e.change(ctx, t.configMap(i, 0), 1)
}
