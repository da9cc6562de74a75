package scenario

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// inFlight is how many PATCHes a floor of the fan-out has under way at a time. The processors are busy with fewer, so that
// more would not make it faster.
const inFlight = 8

// group is some workloads, each of which gets a new template in every round. Pod-reloader takes care of one group. The others
// are what it is compared with: the same number of PATCHes through a webhook.
type group struct {
	prefix string
	// begin starts a round.
	begin func(ctx context.Context, round int) error
	// took are the durations of the rounds, used is the processor time of the last one.
	took []time.Duration
	used used
}

// groups are those of a fan-out. The webhook of live is the least that keeps pod-reloader's promise that what a template is
// stamped with was true at admission: it reads the ConfigMap for each PATCH, as in the scenario latency. The webhook of noop
// neither reads nor changes anything; it is nil in a fan-out that is not compared with it.
type groups struct {
	*environment

	// workloads is how many each group has.
	workloads        int
	ours, live, noop *group
}

func (g *groups) all() []*group {
	all := []*group{g.ours, g.live}
	if g.noop != nil {
		all = append(all, g.noop)
	}
	return all
}

// fanOut: one ConfigMap changes, many workloads depend on it. The first round warms connections and caches.
func fanOut(ctx context.Context, e *environment) ([]figure.Figure, error) {
	return compareGroups(ctx, &groups{environment: e, workloads: e.Workloads}, 1, e.Rounds, true)
}

// wideFanOut is the same with ten times the workloads, beside the live webhook alone.
func wideFanOut(ctx context.Context, e *environment) ([]figure.Figure, error) {
	return compareGroups(ctx, &groups{environment: e, workloads: e.WideWorkloads}, 0, e.WideRounds, false)
}

// compareGroups compares pod-reloader with the live webhook, and on request with the one that does nothing. Some rounds before the measured
// ones do not count.
func compareGroups(ctx context.Context, g *groups, warming, rounds int, withNoop bool) ([]figure.Figure, error) {
	if err := g.create(ctx, withNoop); err != nil {
		return nil, err
	}
	err := g.profiler.during(ctx, g.name, g.Load, func() error { return g.run(ctx, warming, rounds) })
	if err != nil {
		return nil, err
	}
	if err := g.watcher.Sync(ctx); err != nil {
		return nil, err
	}
	return append(g.figures(), missedOrDoubled(g.unequal(g.named(g.ours.prefix), warming+rounds))), nil
}

// figures compare the medians of the durations, and the processor time.
func (g *groups) figures() []figure.Figure {
	row := func(name string, value, floor *group, budget figure.Budget) figure.Figure {
		return figure.Figure{
			Name: name, Unit: figure.Seconds, Value: median(value.took).Seconds(), Floor: median(floor.took).Seconds(), Budget: budget,
			Note: fmt.Sprintf("medians of %d rounds: %s, floor %s", len(value.took), rounded(value.took), rounded(floor.took)),
		}
	}
	until := func(of *group) usage { return of.used.until }
	figures := []figure.Figure{row(fmt.Sprintf("1 ConfigMap, %d workloads, all templates", g.workloads), g.ours, g.live, figure.Times(1.3))}
	if g.noop != nil {
		figures = append(figures,
			row("over a webhook that does nothing", g.ours, g.noop, figure.Budget{}),
			row("the floor, over a webhook that does nothing", g.live, g.noop, figure.Budget{}))
	}
	return append(figures,
		figure.Figure{
			Name: "processor time of all processes until then", Unit: figure.Seconds,
			Value: until(g.ours).total().Seconds(), Floor: until(g.live).total().Seconds(),
			Note: fmt.Sprintf("of one round: %s; floor: %s", until(g.ours), until(g.live)),
		},
		figure.Figure{
			Name: "processor time of the aftermath", Unit: figure.Seconds, Value: g.ours.used.after.total().Seconds(),
			Note: fmt.Sprintf("of one round, mostly for Events: %s", g.ours.used.after),
		})
}

// used is the processor time of a round: until every workload has its new template, and after that until nothing is left to do.
type used struct{ until, after usage }

// run lets the groups take turns, so that what else the machine does affects all of them.
func (g *groups) run(ctx context.Context, warming, rounds int) error {
	for round := range warming + rounds {
		for _, one := range g.all() {
			took, spent, err := g.measure(ctx, one.prefix, func() error { return one.begin(ctx, round) })
			if err != nil {
				return err
			}
			if round >= warming {
				one.took, one.used = append(one.took, took), spent
			}
		}
	}
	return nil
}

// sharing: how many reads a reload takes where many workloads depend on one ConfigMap.
func sharing(ctx context.Context, e *environment) ([]figure.Figure, error) {
	if err := e.createConfigMap(ctx, "shared"); err != nil {
		return nil, err
	}
	g := &groups{environment: e, workloads: e.Workloads}
	err := parallel(ctx, g.workloads, func(ctx context.Context, i int) error {
		_, err := e.deploy(ctx, deployment{name: numbered("ours", i), configMaps: []string{"shared"}})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := e.awaitIdle(ctx); err != nil {
		return nil, err
	}
	requests, err := e.requestsDuring(ctx, func() error {
		_, _, err := g.measure(ctx, "ours", func() error { return e.change(ctx, "shared", 1) })
		return err
	})
	if err != nil {
		return nil, err
	}
	each := 1 / float64(g.workloads)
	return []figure.Figure{
		{
			Name:  fmt.Sprintf("reads per reload, %d workloads", g.workloads),
			Value: float64(reads(requests.In(e.name))) * each, Budget: figure.AtMost(1 + each),
			Note: "one of metadata in the webhook for each, at most one of the object in the loop for all, less where they share",
		},
		missedOrDoubled(e.unequal(g.named("ours"), 1)),
	}, nil
}

// create creates the workloads of all groups, and starts what makes the floors.
func (g *groups) create(ctx context.Context, withNoop bool) error {
	kubeconfig, err := g.floors.kubeconfig("patcher")
	if err != nil {
		return err
	}
	if err := g.floors.installWebhook(ctx, "livehook", livehook, kubeconfig, g.name, "live"); err != nil {
		return err
	}
	for _, name := range []string{"shared", "live"} {
		if err := g.createConfigMap(ctx, name); err != nil {
			return err
		}
	}
	of := []deployment{
		{name: "ours", configMaps: []string{"shared"}},
		{name: "live", configMaps: []string{"live"}, indifferent: true, labels: livehook},
	}
	if withNoop {
		if err := g.floors.installWebhook(ctx, "noophook", noop); err != nil {
			return err
		}
		of = append(of, deployment{name: "noop", configMaps: []string{"shared"}, indifferent: true, labels: noop})
	}
	err = parallel(ctx, len(of)*g.workloads, func(ctx context.Context, i int) error {
		d := of[i%len(of)]
		d.name = numbered(d.name, i/len(of))
		_, err := g.deploy(ctx, d)
		return err
	})
	if err != nil {
		return err
	}
	g.ours = &group{prefix: "ours", begin: func(ctx context.Context, round int) error { return g.change(ctx, "shared", round+1) }}
	if g.live, err = g.patched(ctx, kubeconfig, "live", "poke"); err != nil || !withNoop {
		return err
	}
	g.noop, err = g.patched(ctx, kubeconfig, "noop", "template")
	return err
}

// patched starts the patcher of a group of workloads.
func (g *groups) patched(ctx context.Context, kubeconfig, prefix, what string) (*group, error) {
	address, err := freeAddress(g.cp)
	if err != nil {
		return nil, err
	}
	begin := func(ctx context.Context, round int) error {
		return post(ctx, "http://"+address+"/?"+url.Values{"value": {strconv.Itoa(round)}}.Encode())
	}
	return &group{prefix: prefix, begin: begin}, g.floors.start(ctx, "patcher", address,
		kubeconfig, address, g.name, prefix, strconv.Itoa(g.workloads), strconv.Itoa(inFlight), what)
}

// named are the workloads of a group.
func (g *groups) named(prefix string) []observe.Workload {
	var workloads []observe.Workload
	for n := range g.workloads {
		workloads = append(workloads, observe.Deployment(g.name, numbered(prefix, n)))
	}
	return workloads
}

// measure does something and returns the time until every workload of one group has a new template, and the processor time.
func (g *groups) measure(ctx context.Context, prefix string, begin func() error) (took time.Duration, spent used, err error) {
	if err := g.awaitIdle(ctx); err != nil {
		return 0, used{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	workloads := g.named(prefix)
	seen := g.watcher.Total(g.name)
	before, err := g.usage()
	if err != nil {
		return 0, used{}, err
	}
	started := time.Now()
	if err := begin(); err != nil {
		return 0, used{}, err
	}
	err = g.watcher.Await(ctx, "all templates", func() error {
		if changed := g.watcher.Total(g.name) - seen; changed < len(workloads) {
			return fmt.Errorf("%d of %d have changed", changed, len(workloads))
		}
		return nil
	})
	if err != nil {
		return 0, used{}, err
	}
	then, err := g.usage()
	if err != nil {
		return 0, used{}, err
	}
	if err := g.awaitIdle(ctx); err != nil {
		return 0, used{}, err
	}
	after, err := g.usage()
	return last(g.watcher, workloads).Sub(started), used{until: then.since(before), after: after.since(then)}, err
}

// last is when the last of some workloads got its present template.
func last(watcher *observe.Watcher, workloads []observe.Workload) time.Time {
	var last time.Time
	for _, workload := range workloads {
		if changes := watcher.Changes(workload); len(changes) > 0 && changes[len(changes)-1].Time.After(last) {
			last = changes[len(changes)-1].Time
		}
	}
	return last
}

func rounded(durations []time.Duration) []time.Duration {
	var short []time.Duration
	for _, d := range durations {
		short = append(short, d.Round(time.Millisecond))
	}
	return short
}
