package scenario

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// levels is how many custom resources lead from one that a workload may name to the lowest one, both included.
const levels = 4

// graph: a start beside a large graph of custom resources, of which the lowest one has changed in the meantime, and what a
// further change evaluates.
func graph(ctx context.Context, e *environment) ([]figure.Figure, error) {
	evaluated, err := evaluation(ctx, e.Sizes)
	if err != nil {
		return nil, err
	}
	if err := e.applyLinks(ctx); err != nil {
		return nil, err
	}
	figures, err := e.withArgs(ctx, []string{fromConfigMap}, linkGraph{e}.measure)
	return append(figures, evaluated), err
}

// evaluation is what package referent needs for a change of one leaf among 10,000 nodes.
func evaluation(ctx context.Context, sizes Sizes) (figure.Figure, error) {
	const leaf = "Leaf"
	found, err := goBench(ctx, path.Join("pkg", "referent"), "^Benchmark"+leaf+"$", sizes.BenchTime, sizes.BenchTimes)
	if err != nil {
		return figure.Figure{}, err
	}
	return figure.Figure{
		Name: "10,000 nodes: evaluation of a leaf's change", Unit: figure.Nanoseconds, Value: found.median(leaf, "ns/op"),
		Budget: figure.AtMost(float64(time.Millisecond)), Note: "the leaf and the three nodes above it, without requests",
	}, found.require(leaf)
}

// linkGraph is a large graph of custom resources.
type linkGraph struct{ *environment }

// measure creates the graph, changes its lowest node while pod-reloader is stopped, starts pod-reloader, and changes the node again.
func (g linkGraph) measure(ctx context.Context) ([]figure.Figure, error) {
	empty, err := g.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	probe, err := g.prepare(ctx)
	if err != nil {
		return nil, err
	}
	before := len(g.watcher.Changes(probe))
	start, err := g.measureStart(ctx, probe, before+1, g.awaitNodes)
	if err != nil {
		return nil, err
	}
	started, err := g.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	evaluated, err := g.evaluatedBy(ctx, func() error {
		if err := g.changeLowest(ctx, 2); err != nil {
			return err
		}
		_, err := g.watcher.AwaitTemplateChanges(ctx, probe, before+2)
		return err
	})
	if err != nil {
		return nil, err
	}
	return append(g.figures(empty, started, start, evaluated), missedOrDoubled(g.unequal([]observe.Workload{probe}, before+2))), nil
}

// prepare creates the graph and a workload that tracks a top node, and changes the lowest node below that while pod-reloader is stopped.
func (g linkGraph) prepare(ctx context.Context) (probe observe.Workload, err error) {
	if err := g.create(ctx); err != nil {
		return probe, err
	}
	top := "links.bench.example.com/" + linkName(0, 0)
	if probe, err = g.deploy(ctx, deployment{name: "probe", referent: top}); err != nil {
		return probe, err
	}
	if err := g.awaitAdopted(ctx, "probe", top); err != nil {
		return probe, err
	}
	if err := g.awaitSettled(ctx); err != nil {
		return probe, err
	}
	if err := g.installation.StopAll(ctx); err != nil {
		return probe, err
	}
	return probe, g.changeLowest(ctx, 1)
}

func (g linkGraph) changeLowest(ctx context.Context, size int) error {
	return g.merge(ctx, link(), linkName(levels-1, 0), fmt.Sprintf(`{"spec":{"size":%d}}`, size))
}

func (g linkGraph) figures(empty, started float64, start starting, evaluated float64) []figure.Figure {
	what := fmt.Sprintf("%d custom resources: ", g.Links)
	return []figure.Figure{
		{
			Name: what + "resident after start", Unit: figure.Megabytes, Value: started, Floor: empty, Budget: figure.AtMost(150),
			Note: "the floor is without any of them",
		},
		{
			Name: what + "ready", Unit: figure.Seconds, Value: start.ready.Seconds(), Budget: figure.AtMost(5),
			Note: "probe, caches, and every node in the graph",
		},
		{
			Name: what + "caught up", Unit: figure.Seconds, Value: start.caughtUp.Seconds(), Budget: figure.AtMost(15),
			Note: "from the start of the process until the change of a leaf that it missed is a new template",
		},
		{Name: what + "evaluations by a leaf's change", Value: evaluated, Budget: figure.Exactly(levels)},
	}
}

// create creates the graph: chains of Links, each of the given number of levels.
func (g linkGraph) create(ctx context.Context) error {
	began := time.Now()
	err := parallel(ctx, g.Links, func(ctx context.Context, i int) error {
		level, chain := i%levels, i/levels
		spec := map[string]any{"size": int64(0)}
		if level < levels-1 {
			spec["link"] = linkName(level+1, chain)
		}
		return g.createLink(ctx, linkName(level, chain), spec)
	})
	g.say("%d custom resources created in %s", g.Links, time.Since(began).Round(time.Second))
	return err
}

func linkName(level, chain int) string { return fmt.Sprintf("link-%d-%d", level, chain) }

// awaitNodes waits until the graph of the one replica has all nodes.
func (g linkGraph) awaitNodes(ctx context.Context) error {
	return await(ctx, "the graph", 10*time.Millisecond, 2*time.Minute, func(ctx context.Context) error {
		metrics, err := g.installation.Replicas()[0].Metrics(ctx)
		if err != nil {
			return err
		}
		if n := metrics.Sum("pod_reloader_referents"); n != float64(g.Links) {
			return fmt.Errorf("%v of %d nodes", n, g.Links)
		}
		return nil
	})
}

// evaluatedBy returns how many nodes the one replica evaluates because of something.
func (g linkGraph) evaluatedBy(ctx context.Context, do func() error) (float64, error) {
	read := func() (installation.Metrics, error) { return g.installation.Replicas()[0].Metrics(ctx) }
	before, err := read()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := read()
	if err != nil {
		return 0, err
	}
	return after.Since(before).Sum("pod_reloader_referent_evaluations_total"), nil
}
