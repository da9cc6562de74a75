package scenario

import (
	"context"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// chain: a change three references below a custom resource, beside the change of a ConfigMap that a workload names itself.
func chain(ctx context.Context, e *environment) (figures []figure.Figure, err error) {
	if err := e.applyLinks(ctx); err != nil {
		return nil, err
	}
	if err := e.createWatchedNamespace(ctx); err != nil {
		return nil, err
	}
	err = e.withArgs(ctx, []string{fromConfigMap}, func() error {
		deep, plain, err := e.chains(ctx)
		if err != nil {
			return err
		}
		if err := e.alternate(ctx, e.ChainSamples, deep, plain); err != nil {
			return err
		}
		unchanged, err := e.unchanged(ctx, deep)
		if err != nil {
			return err
		}
		missed := float64(deep.value + 1 - len(e.watcher.Changes(deep.deployment)))
		figures = append(chainFigures(deep, plain), unchanged...)
		figures = append(figures, figure.Figure{Name: "missed or doubled", Value: math.Abs(missed), Budget: figure.Exactly(0)})
		return nil
	})
	return figures, err
}

// chainFigures hold the duration of a change below custom resources against that of a plain one.
func chainFigures(deep, plain *side) []figure.Figure {
	var figures []figure.Figure
	for _, p := range []float64{50, 95} {
		took, floor := milliseconds(percentile(deep.took, p)), milliseconds(percentile(plain.took, p))
		f := figure.Figure{
			Name: fmt.Sprintf("leaf's change to new template, p%.0f", p), Unit: figure.Milliseconds, Value: took, Floor: floor,
		}
		if p == 50 {
			f.Budget = figure.AtMost(math.Round(2*floor + milliseconds(chainDebounce)))
			f.Note = fmt.Sprintf("floor: a plain ConfigMap; budget: twice that, and the debounce of %s", chainDebounce)
		}
		figures = append(figures, f)
	}
	return figures
}

// chains creates both sides, and waits until pod-reloader knows the state of the custom resource.
func (e *environment) chains(ctx context.Context) (deep, plain *side, err error) {
	deep, plain = &side{configMap: "deep"}, &side{configMap: "plain"}
	for _, s := range []*side{deep, plain} {
		if err := e.configMap(ctx, s.configMap); err != nil {
			return nil, nil, err
		}
	}
	for _, l := range []struct{ name, field, to string }{
		{"leaf", "configMap", "deep"}, {"middle", "link", "leaf"}, {"root", "link", "middle"},
	} {
		object := link()
		object.SetNamespace(e.name)
		object.SetName(l.name)
		object.Object["spec"] = map[string]any{l.field: l.to}
		if err := e.Create(ctx, object); err != nil {
			return nil, nil, fmt.Errorf("create Link %s: %w", l.name, err)
		}
	}
	if deep.deployment, err = e.deploy(ctx, deployment{name: "deep", referent: referent}); err != nil {
		return nil, nil, err
	}
	if plain.deployment, err = e.deploy(ctx, deployment{name: "plain", configMaps: []string{"plain"}}); err != nil {
		return nil, nil, err
	}
	return deep, plain, e.adopted(ctx, "deep", referent)
}

// unchanged edits what does not count, then what counts, once by each of the two watches: what the former cost is what is
// left of the evaluations and writes.
func (e *environment) unchanged(ctx context.Context, deep *side) ([]figure.Figure, error) {
	if err := e.idle(ctx); err != nil {
		return nil, err
	}
	before, err := e.in.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	var evaluations float64
	requests, err := e.requestsDuring(ctx, func() (err error) {
		if err := e.editLabels(ctx); err != nil {
			return err
		}
		if evaluations, err = e.changeEach(ctx, deep, before); err != nil {
			return err
		}
		return e.idle(ctx)
	})
	if err != nil {
		return nil, err
	}
	writes := requests.In(e.name).Writes()
	count := writes.Count()
	others := len(writes) - count["create events"] - count["patch events"] - 2
	return []figure.Figure{
		{
			Name:  fmt.Sprintf("evaluations by %d edits of labels", 2*e.Edits),
			Value: evaluations - float64((byConfigMap+byLink)*len(e.in.Replicas())), Budget: figure.Exactly(0),
		},
		{Name: "writes by them", Value: float64(others), Budget: figure.Exactly(0), Note: fmt.Sprintf("with 2 reloads: %v", count)},
	}, nil
}

// editLabels edits what does not count.
func (e *environment) editLabels(ctx context.Context) error {
	for n := range e.Edits {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n)
		if err := e.merge(ctx, link(), "leaf", patch); err != nil {
			return err
		}
		if err := e.merge(ctx, &corev1.ConfigMap{}, "deep", patch); err != nil {
			return err
		}
	}
	return nil
}

// What a change evaluates in each replica: the ConfigMap, leaf, middle and root; or the same without the ConfigMap.
const byConfigMap, byLink = 4, 3

// changeEach changes the ConfigMap, then the lowest Link, and waits for the reload and the evaluations of each. It returns the
// evaluations in all replicas.
func (e *environment) changeEach(
	ctx context.Context, deep *side, before installation.Metrics,
) (evaluations float64, err error) {
	expect := func(atLeast int) error {
		return await(ctx, "the evaluations", 50*time.Millisecond, time.Minute, func(ctx context.Context) error {
			now, err := e.in.Metrics(ctx)
			if err != nil {
				return err
			}
			evaluations = now.Since(before).Sum("pod_reloader_referent_evaluations_total")
			if evaluations < float64(atLeast*len(e.in.Replicas())) {
				return fmt.Errorf("%v in all replicas", evaluations)
			}
			return nil
		})
	}
	if err := deep.measure(ctx, e); err != nil {
		return 0, err
	}
	if err := expect(byConfigMap); err != nil {
		return 0, err
	}
	if err := e.merge(ctx, link(), "leaf", `{"spec":{"size":1}}`); err != nil {
		return 0, err
	}
	if _, err := e.watcher.AwaitTemplateChanges(ctx, deep.deployment, deep.value+1); err != nil {
		return 0, err
	}
	err = expect(byConfigMap + byLink)
	return evaluations, err
}
