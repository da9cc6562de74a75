package scenario

import (
	"context"
	"errors"
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

// burst: what must be one rollout, and what must be none, as shipped.
func burst(ctx context.Context, e *environment) ([]figure.Figure, error) {
	return trials{e}.run(ctx)
}

// trials prepares and makes all trials.
type trials struct{ *environment }

// seen is how the observer names a workload of a trial.
func (ts trials) seen(t trial, i int) observe.Workload {
	return observe.Deployment(ts.name, t.workload(i))
}

// run makes everything happen, one trial after the other, and waits: first for all that must happen, then until nothing
// is left to do.
func (ts trials) run(ctx context.Context) ([]figure.Figure, error) {
	all := ts.all()
	for _, t := range all {
		if err := ts.prepare(ctx, t); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if err := ts.awaitSettled(ctx); err != nil {
		return nil, err
	}
	for _, t := range all {
		err := parallel(ctx, t.workloads, func(ctx context.Context, i int) error { return t.do(ctx, t, i) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	ts.await(ctx, all)
	if err := errors.Join(ts.awaitSettled(ctx), ts.watcher.Sync(ctx)); err != nil {
		return nil, err
	}
	figures := make([]figure.Figure, 0, len(all))
	for _, t := range all {
		figures = append(figures, ts.figure(t))
	}
	return figures, nil
}

// await waits until all workloads were restarted as often as they must.
func (ts trials) await(ctx context.Context, all []trial) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, t := range all {
		for i := range t.workloads {
			if _, err := ts.watcher.AwaitTemplateChanges(ctx, ts.seen(t, i), t.restarts); err != nil {
				ts.say("%v", err) // the figure shows it
			}
		}
	}
}

// prepare creates the workloads of a trial with their configuration.
func (ts trials) prepare(ctx context.Context, t trial) error {
	return parallel(ctx, t.workloads, func(ctx context.Context, i int) error {
		d := deployment{name: t.workload(i)}
		for n := range t.configMaps {
			d.configMaps = append(d.configMaps, t.configMap(i, n))
		}
		_, err := ts.deployWithConfig(ctx, d)
		return err
	})
}

// figure counts new templates, and ReplicaSets: a rollout is whichever there were more of.
func (ts trials) figure(t trial) figure.Figure {
	off, most := 0, 0
	for i := range t.workloads {
		workload := ts.seen(t, i)
		rollouts := max(len(ts.watcher.Changes(workload)), ts.watcher.ReplicaSets(workload)-1)
		most = max(most, rollouts)
		if rollouts != t.restarts {
			off++
			ts.say("%s: %s was rolled out %d times: %v", t.name, workload, rollouts, ts.watcher.Changes(workload))
		}
	}
	if t.most {
		return figure.Figure{Name: t.name, Value: float64(most), Budget: figure.Exactly(float64(t.restarts))}
	}
	return figure.Figure{Name: t.name, Value: float64(off), Budget: figure.Exactly(0)}
}

func (ts trials) all() []trial {
	return []trial{
		{
			name: "ten-configmaps-at-once", workloads: ts.Bursts, configMaps: 10, restarts: 1, most: true, do: ts.tenAtOnce,
		},
		{name: "metadata-edits-spurious-rollouts", workloads: 1, configMaps: 1, do: ts.editMetadata, most: true},
		{name: "releases-rolled-twice", workloads: ts.Releases, configMaps: 1, restarts: 1, do: ts.release},
		{name: "re-applies-spurious-rollouts", workloads: 1, configMaps: 1, do: ts.reapply, most: true},
		{name: "changes-missed-or-doubled", workloads: ts.Changes, configMaps: 1, restarts: 1, do: ts.changeOnce},
	}
}

// tenAtOnce changes all ConfigMaps of a workload at the same time.
func (ts trials) tenAtOnce(ctx context.Context, t trial, i int) error {
	return parallel(ctx, t.configMaps, func(ctx context.Context, n int) error { return ts.change(ctx, t.configMap(i, n), 1) })
}

// editMetadata edits labels and annotations of a ConfigMap.
func (ts trials) editMetadata(ctx context.Context, t trial, i int) error {
	for n := range ts.Edits {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"edit":"%d"},"annotations":{"edit":"%d"}}}`, n, n)
		if err := ts.merge(ctx, &corev1.ConfigMap{}, t.configMap(i, 0), patch); err != nil {
			return err
		}
	}
	return nil
}

// release changes configuration, then the workload.
func (ts trials) release(ctx context.Context, t trial, i int) error {
	if err := ts.change(ctx, t.configMap(i, 0), 1); err != nil {
		return err
	}
	return ts.merge(ctx, &appsv1.Deployment{}, t.workload(i), `{"spec":{"template":{"metadata":{"annotations":{"release":"2"}}}}}`)
}

// reapply replaces a workload by its manifest, which has none of pod-reloader's annotations.
func (ts trials) reapply(ctx context.Context, t trial, i int) error {
	for range ts.Applies {
		manifest := deployment{name: t.workload(i), configMaps: []string{t.configMap(i, 0)}}.object(ts.name)
		if err := ts.Update(ctx, manifest); err != nil {
			return fmt.Errorf("replace %s: %w", t.workload(i), err)
		}
	}
	return nil
}

// changeOnce changes the one ConfigMap of a workload.
func (ts trials) changeOnce(ctx context.Context, t trial, i int) error {
	return ts.change(ctx, t.configMap(i, 0), 1)
}
