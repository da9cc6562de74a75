package scenario

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// reads is how many of the requests read one ConfigMap or one Secret. In the log, metadata and whole objects are
// alike.
func reads(requests controlplane.Requests) int {
	count := requests.Count()
	return count["get configmaps"] + count["get secrets"]
}

// requests counts what the API server is asked for.
func requests(ctx context.Context, e *environment) ([]figure.Figure, error) {
	t, err := newTriples(ctx, e, func(int, deployment) map[string]string { return nil })
	if err != nil {
		return nil, err
	}
	figures, err := t.reloadRequests(ctx, 1+3)
	if err != nil {
		return nil, err
	}
	for _, quiet := range []struct {
		name string
		what func(context.Context) error
		// every says that every request counts, not only writes and reads of single objects.
		every bool
	}{
		{"start after adoption: writes and payload reads", e.installation.RestartAll, false},
		{"failover: writes and payload reads", func(ctx context.Context) error { return e.replaceLeader(ctx, e.awaitSettled) }, false},
		{"lost connections: writes and payload reads", t.loseConnections, false},
		{"updates outside the template: requests", t.updateOutside, true},
	} {
		f, err := t.nothing(ctx, quiet.what, quiet.every)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quiet.name, err)
		}
		f.Name = quiet.name
		figures = append(figures, f)
	}
	return append(figures, missedOrDoubled(t.unequal(t.workloads, 2))), nil
}

// triples are workloads with three Refs each.
type triples struct {
	*environment

	workloads []observe.Workload
}

// newTriples creates the workloads. annotations returns those of one that does not have SAP's.
func newTriples(ctx context.Context, e *environment, annotations func(i int, d deployment) map[string]string) (*triples, error) {
	t := &triples{environment: e, workloads: make([]observe.Workload, e.Reloads)}
	return t, parallel(ctx, e.Reloads, func(ctx context.Context, i int) (err error) {
		d := deployment{
			name:       numbered("web", i),
			configMaps: []string{numbered("changing", i), numbered("other", i)}, secrets: []string{numbered("secret", i)},
		}
		d.annotations = annotations(i, d)
		t.workloads[i], err = e.deployWithConfig(ctx, d)
		return err
	})
}

// reloadAll changes one ConfigMap of every workload and waits for the new templates, and until nothing is left to do.
func (t *triples) reloadAll(ctx context.Context, value int) error {
	err := parallel(ctx, len(t.workloads), func(ctx context.Context, i int) error {
		return t.change(ctx, numbered("changing", i), value)
	})
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, workload := range t.workloads {
		if _, err := t.watcher.AwaitTemplateChanges(waiting, workload, value); err != nil {
			return err
		}
	}
	return t.awaitSettled(ctx)
}

// reloadRequests counts the requests of reloads, each of which may cost so many reads. They are reloaded twice: the first
// reader of an object keeps its digest, so that only the second time counts.
func (t *triples) reloadRequests(ctx context.Context, mostReads int) ([]figure.Figure, error) {
	if err := t.awaitSettled(ctx); err != nil {
		return nil, err
	}
	if err := t.reloadAll(ctx, 1); err != nil {
		return nil, err
	}
	all, err := t.requestsDuring(ctx, func() error { return t.reloadAll(ctx, 2) })
	if err != nil {
		return nil, err
	}
	mine := all.In(t.name)
	per := func(count int) float64 { return float64(count) / float64(len(t.workloads)) }
	count := mine.Count()
	patches, read, events := count["patch deployments"], reads(mine), count["create events"]+count["patch events"]
	return []figure.Figure{
		{Name: "PATCHes per reload", Value: per(patches), Budget: figure.Exactly(1)},
		{
			Name: "reads per reload, 3 Refs", Value: per(read), Budget: figure.AtMost(float64(mostReads)),
			Note: "the changed object in the loop, the metadata of each Ref in the webhook",
		},
		{Name: "Events per reload", Value: per(events), Budget: figure.Exactly(1)},
		{
			Name: "other requests", Value: float64(len(mine) - patches - read - events), Budget: figure.Exactly(0),
			Note: fmt.Sprintf("%d reloads: %v", len(t.workloads), count),
		},
	}, nil
}

// nothing does something that calls for no reload and counts what it costs in the scenario's namespace.
func (t *triples) nothing(ctx context.Context, do func(context.Context) error, every bool) (figure.Figure, error) {
	if err := t.awaitSettled(ctx); err != nil {
		return figure.Figure{}, err
	}
	all, err := t.requestsDuring(ctx, func() error {
		if err := do(ctx); err != nil {
			return err
		}
		if _, err := t.installation.Leader(ctx); err != nil {
			return err
		}
		return t.awaitSettled(ctx)
	})
	if err != nil {
		return figure.Figure{}, err
	}
	mine := all.In(t.name)
	cost := len(mine)
	if !every {
		cost = len(mine.Writes()) + reads(mine)
	}
	f := figure.Figure{Value: float64(cost), Budget: figure.Exactly(0)}
	if cost > 0 {
		f.Note = fmt.Sprint(mine.Count())
	}
	return f, nil
}

// loseConnections breaks every connection of pod-reloader to the API server: all watches begin anew.
func (t *triples) loseConnections(context.Context) error {
	t.proxy.Break()
	return nil
}

// updateOutside changes every workload without changing a template: labels, and the scale in both ways.
func (t *triples) updateOutside(ctx context.Context) error {
	return parallel(ctx, t.Reloads, func(ctx context.Context, i int) error {
		name := numbered("web", i)
		for _, patch := range []string{`{"metadata":{"labels":{"team":"a"}}}`, `{"spec":{"replicas":1}}`} {
			if err := t.merge(ctx, &appsv1.Deployment{}, name, patch); err != nil {
				return err
			}
		}
		return t.scaleTo(ctx, name, 0)
	})
}

// scaleTo is what `kubectl scale` does.
func (t *triples) scaleTo(ctx context.Context, name string, replicas int32) error {
	object := &appsv1.Deployment{}
	object.Namespace, object.Name = t.name, name
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if err := t.SubResource("scale").Update(ctx, object, client.WithSubResourceBody(scale)); err != nil {
		return fmt.Errorf("scale %s: %w", name, err)
	}
	return nil
}
