package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// side is one of those that do the same job.
type side struct {
	configMap  string
	deployment observe.Workload
	value      int
	took       []time.Duration
}

// latency: from the moment a client sends the change of a ConfigMap until the watcher sees the new pod template. Three do
// the same job beside pod-reloader: the bare loop, the bare loop through a webhook that does nothing, and the bare loop
// through a webhook that reads the ConfigMap live. The last one is the least that keeps pod-reloader's promise that what a
// template is stamped with was true at admission; what it takes is what that promise costs.
func latency(ctx context.Context, e *environment) ([]figure.Figure, error) {
	sides, err := newSides(ctx, e)
	if err != nil {
		return nil, err
	}
	err = e.profiler.during(ctx, e.name, e.Load, func() error { return e.alternate(ctx, e.Samples, sides.all()...) })
	if err != nil {
		return nil, err
	}
	if err := e.watcher.Sync(ctx); err != nil {
		return nil, err
	}
	figures := sides.figures()
	figures[0].Note = fmt.Sprintf("%d samples of each in blocks of %d", len(sides.ours.took), e.Block)
	doubled := float64(sides.ours.value - len(e.watcher.Changes(sides.ours.deployment)))
	return append(figures, figure.Figure{Name: "doubled", Value: doubled, Budget: figure.Exactly(0)}), nil
}

// sides are pod-reloader and what it is compared with.
type sides struct {
	ours, bare, noop, live *side
}

func (s sides) all() []*side { return []*side{s.ours, s.live, s.noop, s.bare} }

// figures hold each percentile of ours against both floors.
func (s sides) figures() []figure.Figure {
	at := func(side *side, p float64) float64 { return milliseconds(percentile(side.took, p)) }
	row := func(name string, value, floor *side, p float64, budget figure.Budget) figure.Figure {
		return figure.Figure{Name: name, Unit: figure.Milliseconds, Value: at(value, p), Floor: at(floor, p), Budget: budget}
	}
	return []figure.Figure{
		row("change to new template, p50", s.ours, s.live, 50, figure.Times(1.1)),
		// The floor above is itself 1.3 to 1.4 times the bare loop.
		row("p50, over the bare loop", s.ours, s.bare, 50, figure.Times(1.6)),
		row("p50 of the floor, over the bare loop", s.live, s.bare, 50, figure.Budget{}),
		row("p50 through a webhook that does nothing", s.noop, s.bare, 50, figure.Budget{}),
		row("p95, over the bare loop", s.ours, s.bare, 95, figure.Budget{}),
		row("p99, over the bare loop", s.ours, s.bare, 99, figure.Times(2)),
		row("p99 of the floor, over the bare loop", s.live, s.bare, 99, figure.Budget{}),
	}
}

// alternate takes so many samples of each side, in blocks, so that what else the machine does affects all of them. The first block of
// each warms connections and caches.
func (e *environment) alternate(ctx context.Context, samples int, sides ...*side) error {
	for block := range samples/e.Block + 1 {
		for _, s := range sides {
			for range e.Block {
				if err := e.measureSide(ctx, s); err != nil {
					return err
				}
			}
			if block == 0 {
				s.took = nil
			}
			if err := e.awaitIdle(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// newSides makes one of everything for each; pod-reloader takes care of the first.
func newSides(ctx context.Context, e *environment) (sides, error) {
	var s sides
	for _, one := range []struct {
		side   **side
		name   string
		labels map[string]string
	}{{&s.ours, "ours", nil}, {&s.bare, "bare", nil}, {&s.noop, "noop", noop}, {&s.live, "live", livehook}} {
		d := deployment{name: one.name, configMaps: []string{one.name}, indifferent: one.name != "ours", labels: one.labels}
		workload, err := e.deployWithConfig(ctx, d)
		if err != nil {
			return sides{}, err
		}
		*one.side = &side{configMap: one.name, deployment: workload}
	}
	kubeconfig, err := e.floors.kubeconfig("bareloop")
	if err != nil {
		return sides{}, err
	}
	if err := e.floors.installWebhook(ctx, "livehook", livehook, kubeconfig, e.name, "live"); err != nil {
		return sides{}, err
	}
	if err := e.floors.installWebhook(ctx, "noophook", noop); err != nil {
		return sides{}, err
	}
	for _, arguments := range [][]string{{"bare", "bare", "template"}, {"noop", "noop", "template"}, {"live", "live", "poke"}} {
		if err := e.floors.start(ctx, "bareloop", "", append([]string{kubeconfig, e.name}, arguments...)...); err != nil {
			return sides{}, err
		}
	}
	watching := func(ctx context.Context) error {
		requests, err := e.cp.Audit().All(ctx)
		if err != nil {
			return err
		}
		if n := requests.By(identityOf("bareloop").User).Count()["watch configmaps"]; n < 3 {
			return fmt.Errorf("%d of 3 have asked for their watches", n)
		}
		return nil
	}
	// That a watch was asked for is in the log before it begins; the loops miss no change meanwhile.
	return s, await(ctx, "the bare loops", 50*time.Millisecond, time.Minute, watching)
}

// aftermath is what follows a new template and is no part of the measurement: Events, caches.
const aftermath = 10 * time.Millisecond

// measureSide takes one sample.
func (e *environment) measureSide(ctx context.Context, s *side) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	before := len(e.watcher.Changes(s.deployment))
	s.value++
	started := time.Now()
	if err := e.change(ctx, s.configMap, s.value); err != nil {
		return err
	}
	changes, err := e.watcher.AwaitTemplateChanges(ctx, s.deployment, before+1)
	if err != nil {
		return err
	}
	s.took = append(s.took, changes[before].Time.Sub(started))
	return pause(ctx, aftermath)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
