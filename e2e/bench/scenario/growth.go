package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/bench/model"
)

// growth: what an event that makes no reload due costs in a large cluster. The processor time is compared with that in a small one, whose
// namespaces have as many workloads, on the same model of an API server as for huge.
func growth(ctx context.Context, e *environment) (figures []figure.Figure, err error) {
	few, many, err := startClusters(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, event := range model.Events() {
		if err := compare(ctx, e, event, few, many); err != nil {
			return nil, err
		}
		figures = append(figures, figure.Figure{
			Name: event.Name + ": processor time", Unit: figure.Nanoseconds,
			Value: float64(median(many.costs)), Floor: float64(median(few.costs)), Budget: figure.Times(event.Limit),
			Note: fmt.Sprintf("median of %d means of %d; the floor is with %d workloads", e.GrownRounds, model.InRound, few.Workloads),
		})
	}
	return append(figures, figure.Figure{Name: "writes without a change", Value: float64(few.off() + many.off()), Budget: figure.Exactly(0)}), nil
}

// grown is a cluster with pod-reloader.
type grown struct {
	*model.Model
	process *beside
	// changes are those of ConfigMaps that made a reload due.
	changes int
	// used is the processor time when pod-reloader was at rest the last time, rested when that was.
	used   time.Duration
	rested time.Time
	// costs are the processor times of the type of event that was compared last.
	costs []time.Duration
}

// startClusters starts a small cluster and a large one, unless a scenario has done so. They stay until the environment is
// closed: what follows growth has no part in them.
func startClusters(ctx context.Context, e *environment) (few, many *grown, err error) {
	for _, workloads := range []int{e.GrownFrom, e.Grown}[len(e.grown):] {
		if err := startCluster(ctx, e, workloads); err != nil {
			return nil, nil, err
		}
	}
	return e.grown[0], e.grown[1], nil
}

// startCluster starts a cluster. A collection of garbage would be in some figures and not in others, and takes longer in a large cluster.
// One worker on one processor reads one object at a time: several would open connections, more or less of them.
func startCluster(ctx context.Context, e *environment, workloads int) error {
	m, process, err := e.startModel(ctx, model.Cluster{Workloads: workloads}, settings{
		args: []string{"--namespace-selector=" + model.Selected + "=yes", "--workers=1"},
		env:  []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=2GiB"},
	})
	if err != nil {
		return err
	}
	g := &grown{Model: m, process: process}
	e.grown = append(e.grown, g)
	return g.rest(ctx, quiet)
}

// rest waits until pod-reloader is at rest.
func (g *grown) rest(ctx context.Context, between time.Duration) (err error) {
	g.used, err = g.process.atRest(ctx, between)
	g.rested = time.Now()
	return err
}

func (g *grown) end() error {
	g.process.Kill()
	return g.Stop()
}

// off is how many writes were too few or too many.
func (g *grown) off() int {
	due := model.Probes + g.changes
	return max(g.Written()-due, due-g.Written())
}

// compare measures a type of event in both clusters in turn, so that what else the machine does is in both.
func compare(ctx context.Context, e *environment, event model.Event, few, many *grown) error {
	few.costs, many.costs = nil, nil
	for round := range e.GrownRounds {
		for _, g := range []*grown{few, many} {
			cost, err := g.cost(ctx, event, round)
			if err != nil {
				return fmt.Errorf("%d workloads: %w\n%s", g.Workloads, err, g.process.LogEnd())
			}
			e.say("%d workloads: %s: %s", g.Workloads, event.Name, cost)
			g.costs = append(g.costs, cost)
		}
	}
	return nil
}

// cost is the processor time of an event, the mean of a round. Before and after that, pod-reloader is at rest.
func (g *grown) cost(ctx context.Context, event model.Event, round int) (time.Duration, error) {
	before, err := processorTime(g.process.PID())
	if err != nil {
		return 0, err
	}
	if err := g.Send(event, round, func() error { return g.rest(ctx, 10*time.Millisecond) }); err != nil {
		return 0, err
	}
	// The barrier: what was due because of the events was written before this change.
	if err := g.Change(g.changes); err != nil {
		return 0, err
	}
	g.changes++
	if err := g.Await(ctx); err != nil {
		return 0, err
	}
	err = g.rest(ctx, 50*time.Millisecond)
	return (g.used - before) / model.InRound, err
}

// resting: what pod-reloader uses in the large cluster of growth while nothing happens there, compared with the small one. Other scenarios
// run meanwhile.
func resting(ctx context.Context, e *environment) ([]figure.Figure, error) {
	few, many, err := startClusters(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, e.Rest-time.Since(many.rested)); err != nil {
		return nil, err
	}
	floor, err := few.inMinute()
	if err != nil {
		return nil, err
	}
	used, err := many.inMinute()
	if err != nil {
		return nil, err
	}
	return []figure.Figure{{
		Name: fmt.Sprintf("a minute with %d workloads: processor time", many.Workloads), Unit: figure.Milliseconds,
		Value: milliseconds(used), Floor: milliseconds(floor), Budget: figure.AtMost(1000),
		Note: fmt.Sprintf("the floor is with %d workloads; a wake-up costs more in a process with more memory", few.Workloads),
	}}, nil
}

// inMinute is the processor time that pod-reloader has used in a minute since it was at rest.
func (g *grown) inMinute() (time.Duration, error) {
	used, err := processorTime(g.process.PID())
	return time.Duration(float64(used-g.used) / time.Since(g.rested).Minutes()), err
}
