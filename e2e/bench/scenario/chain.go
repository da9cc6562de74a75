package scenario

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// chain: a change three references below a custom resource, beside the change of a ConfigMap that a workload names itself.
func chain(ctx context.Context, e *environment) ([]figure.Figure, error) {
	if err := e.applyLinks(ctx); err != nil {
		return nil, err
	}
	c := &chains{environment: e, deep: &side{configMap: "deep"}, plain: &side{configMap: "plain"}}
	return e.withArgs(ctx, []string{fromConfigMap}, c.run)
}

// chains are the two sides: deep is a workload above custom resources, plain one that names its ConfigMap.
type chains struct {
	*environment

	deep, plain *side
}

func (c *chains) run(ctx context.Context) ([]figure.Figure, error) {
	if err := c.create(ctx); err != nil {
		return nil, err
	}
	if err := c.alternate(ctx, c.ChainSamples, c.deep, c.plain); err != nil {
		return nil, err
	}
	unchanged, err := c.unchanged(ctx)
	if err != nil {
		return nil, err
	}
	off := c.unequal([]observe.Workload{c.deep.deployment}, c.deep.value+1)
	return slices.Concat(c.figures(), unchanged, []figure.Figure{missedOrDoubled(off)}), nil
}

// figures hold the duration of a change below custom resources against that of a plain one.
func (c *chains) figures() []figure.Figure {
	var figures []figure.Figure
	for _, p := range []float64{50, 95} {
		took, floor := milliseconds(percentile(c.deep.took, p)), milliseconds(percentile(c.plain.took, p))
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

// create creates both sides, and waits until pod-reloader knows the state of the custom resource.
func (c *chains) create(ctx context.Context) (err error) {
	if err := c.createConfigMap(ctx, c.deep.configMap); err != nil {
		return err
	}
	for _, l := range []struct{ name, field, to string }{
		{"leaf", "configMap", "deep"}, {"middle", "link", "leaf"}, {"root", "link", "middle"},
	} {
		if err := c.createLink(ctx, l.name, map[string]any{l.field: l.to}); err != nil {
			return err
		}
	}
	if c.deep.deployment, err = c.deploy(ctx, deployment{name: "deep", referent: referent}); err != nil {
		return err
	}
	if c.plain.deployment, err = c.deployWithConfig(ctx, deployment{name: "plain", configMaps: []string{"plain"}}); err != nil {
		return err
	}
	return c.awaitAdopted(ctx, "deep", referent)
}

// unchanged edits what does not count, then what counts, once by each of the two watches: what the former cost is what is
// left of the evaluations and writes.
func (c *chains) unchanged(ctx context.Context) ([]figure.Figure, error) {
	if err := c.awaitIdle(ctx); err != nil {
		return nil, err
	}
	before, err := c.installation.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	var evaluations float64
	requests, err := c.requestsDuring(ctx, func() (err error) {
		if err := c.editLabels(ctx); err != nil {
			return err
		}
		if evaluations, err = c.changeEach(ctx, before); err != nil {
			return err
		}
		return c.awaitIdle(ctx)
	})
	if err != nil {
		return nil, err
	}
	writes := requests.In(c.name).Writes()
	count := writes.Count()
	others := len(writes) - count["create events"] - count["patch events"] - 2
	return []figure.Figure{
		{
			Name:  fmt.Sprintf("evaluations by %d edits of labels", 2*c.Edits),
			Value: evaluations - float64((byConfigMap+byLink)*len(c.installation.Replicas())), Budget: figure.Exactly(0),
		},
		{Name: "writes by them", Value: float64(others), Budget: figure.Exactly(0), Note: fmt.Sprintf("with 2 reloads: %v", count)},
	}, nil
}

// editLabels edits what does not count.
func (c *chains) editLabels(ctx context.Context) error {
	for n := range c.Edits {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n)
		if err := c.merge(ctx, link(), "leaf", patch); err != nil {
			return err
		}
		if err := c.merge(ctx, &corev1.ConfigMap{}, "deep", patch); err != nil {
			return err
		}
	}
	return nil
}

// What a change evaluates in each replica: the ConfigMap, leaf, middle and root; or the same without the ConfigMap.
const byConfigMap, byLink = 4, 3

// changeEach changes the ConfigMap, then the lowest Link, and waits for the reload and the evaluations of each. It returns the
// evaluations in all replicas.
func (c *chains) changeEach(ctx context.Context, before installation.Metrics) (evaluations float64, err error) {
	expect := func(atLeast int) error {
		return await(ctx, "the evaluations", 50*time.Millisecond, time.Minute, func(ctx context.Context) error {
			now, err := c.installation.Metrics(ctx)
			if err != nil {
				return err
			}
			evaluations = now.Since(before).Sum("pod_reloader_referent_evaluations_total")
			if evaluations < float64(atLeast*len(c.installation.Replicas())) {
				return fmt.Errorf("%v in all replicas", evaluations)
			}
			return nil
		})
	}
	if err := c.measureSide(ctx, c.deep); err != nil {
		return 0, err
	}
	if err := expect(byConfigMap); err != nil {
		return 0, err
	}
	if err := c.merge(ctx, link(), "leaf", `{"spec":{"size":1}}`); err != nil {
		return 0, err
	}
	if _, err := c.watcher.AwaitTemplateChanges(ctx, c.deep.deployment, c.deep.value+1); err != nil {
		return 0, err
	}
	err = expect(byConfigMap + byLink)
	return evaluations, err
}
