package scenario

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/bench/sample"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// inFlight is how many PATCHes the floor of the fan-out has under way at a time. The processors are busy with fewer, so that
// more would not make it faster.
const inFlight = 8

// fanOut: one ConfigMap changes, many workloads depend on it.
func fanOut(ctx context.Context, w *world) ([]figure.Figure, error) {
	watcher, err := w.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	patcher, err := w.crowds(ctx)
	if err != nil {
		return nil, err
	}
	var found waves
	err = w.profiled(ctx, w.Load, func() error { found, err = w.rounds(ctx, watcher, patcher); return err })
	if err != nil {
		return nil, err
	}
	if err := watcher.Sync(ctx); err != nil {
		return nil, err
	}
	// The first round warmed connections and caches.
	ours, floor := found.ours[1:], found.floor[1:]
	value, least := sample.Median(ours), sample.Median(floor)
	return []figure.Figure{
		{
			Name: fmt.Sprintf("1 ConfigMap, %d workloads, all templates", w.Workloads), Unit: figure.Seconds,
			Value: value.Seconds(), Floor: least.Seconds(), Budget: figure.Times(1.4),
			Note: fmt.Sprintf("medians of %d rounds: %s, floor %s", w.Rounds, rounded(ours), rounded(floor)),
		},
		{
			Name: "processor time of all processes until then", Unit: figure.Seconds,
			Value: found.oursUsed.until.total().Seconds(), Floor: found.floorUsed.until.total().Seconds(),
			Note: fmt.Sprintf("of one round: %s; floor: %s", found.oursUsed.until, found.floorUsed.until),
		},
		{
			Name: "processor time of the aftermath", Unit: figure.Seconds, Value: found.oursUsed.after.total().Seconds(),
			Note: fmt.Sprintf("of one round, mostly for Events: %s", found.oursUsed.after),
		},
		{
			Name: "missed or doubled", Value: float64(unequal(watcher, w.crowd("ours"), w.Rounds+1)),
			Budget: figure.Exactly(0),
		},
	}, nil
}

// wideFanOut is the same with ten times the workloads.
func wideFanOut(ctx context.Context, w *world) ([]figure.Figure, error) {
	workloads, rounds := w.Workloads, w.Rounds
	defer func() { w.Workloads, w.Rounds = workloads, rounds }()
	w.Workloads, w.Rounds = w.WideWorkloads, w.WideRounds
	return fanOut(ctx, w)
}

// waves are the durations of all rounds, and the processor time in the last one.
type waves struct {
	ours, floor         []time.Duration
	oursUsed, floorUsed used
}

// used is the processor time of a round: until every workload has its new template, and after that until nothing is left to do.
type used struct{ until, after usage }

// rounds takes turns.
func (w *world) rounds(ctx context.Context, watcher *observe.Watcher, patcher string) (found waves, err error) {
	for round := range w.Rounds + 1 {
		took, spent, err := w.wave(ctx, watcher, "ours", func() error { return w.change(ctx, "shared", round+1) })
		if err != nil {
			return waves{}, err
		}
		found.ours, found.oursUsed = append(found.ours, took), spent
		value := url.Values{"value": {strconv.Itoa(round)}}
		took, spent, err = w.wave(ctx, watcher, "floor", func() error { return post(ctx, patcher+"/?"+value.Encode()) })
		if err != nil {
			return waves{}, err
		}
		found.floor, found.floorUsed = append(found.floor, took), spent
	}
	return found, nil
}

// sharing: how many reads a reload takes where many workloads depend on one ConfigMap.
func sharing(ctx context.Context, w *world) ([]figure.Figure, error) {
	watcher, err := w.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	if err := w.configMap(ctx, "shared"); err != nil {
		return nil, err
	}
	err = parallel(ctx, w.Workloads, func(ctx context.Context, i int) error {
		_, err := w.deploy(ctx, deployment{name: numbered("ours", i), configMaps: []string{"shared"}})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := w.idle(ctx); err != nil {
		return nil, err
	}
	mark, err := w.cp.Audit().Mark()
	if err != nil {
		return nil, err
	}
	if _, _, err := w.wave(ctx, watcher, "ours", func() error { return w.change(ctx, "shared", 1) }); err != nil {
		return nil, err
	}
	requests, err := w.made(ctx, mark)
	if err != nil {
		return nil, err
	}
	each := 1 / float64(w.Workloads)
	return []figure.Figure{
		{
			Name:  fmt.Sprintf("reads per reload, %d workloads", w.Workloads),
			Value: float64(reads(requests.In(w.name))) * each, Budget: figure.AtMost(1 + each),
			Note: "one of metadata in the webhook for each, at most one of the object in the loop for all, less where they share",
		},
		{Name: "missed or doubled", Value: float64(unequal(watcher, w.crowd("ours"), 1)), Budget: figure.Exactly(0)},
	}, nil
}

// crowds creates the workloads of both sides and starts what makes the floor. It returns the address of the patcher.
func (w *world) crowds(ctx context.Context) (string, error) {
	if err := w.noopWebhook(ctx); err != nil {
		return "", err
	}
	if err := w.configMap(ctx, "shared"); err != nil {
		return "", err
	}
	err := parallel(ctx, 2*w.Workloads, func(ctx context.Context, i int) error {
		d := deployment{name: numbered("ours", i/2), configMaps: []string{"shared"}}
		if i%2 == 1 {
			d = deployment{name: numbered("floor", i/2), configMaps: []string{"shared"}, indifferent: true, labels: noop}
		}
		_, err := w.deploy(ctx, d)
		return err
	})
	if err != nil {
		return "", err
	}
	address, err := w.address()
	if err != nil {
		return "", err
	}
	kubeconfig, err := w.kubeconfig("patcher")
	if err != nil {
		return "", err
	}
	err = w.startFloor(ctx, "patcher", address,
		kubeconfig, address, w.name, "floor", strconv.Itoa(w.Workloads), strconv.Itoa(inFlight))
	return "http://" + address, err
}

func (w *world) crowd(prefix string) []observe.Workload {
	var workloads []observe.Workload
	for n := range w.Workloads {
		workloads = append(workloads, observe.Deployment(w.name, numbered(prefix, n)))
	}
	return workloads
}

// wave does something and returns the time until every workload of one side has a new template, and the processor time.
func (w *world) wave(
	ctx context.Context, watcher *observe.Watcher, prefix string, begin func() error,
) (took time.Duration, spent used, err error) {
	if err := w.idle(ctx); err != nil {
		return 0, used{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	crowd := w.crowd(prefix)
	seen := watcher.Total(w.name)
	before, err := w.usage()
	if err != nil {
		return 0, used{}, err
	}
	started := time.Now()
	if err := begin(); err != nil {
		return 0, used{}, err
	}
	err = watcher.Await(ctx, "all templates", func() error {
		if changed := watcher.Total(w.name) - seen; changed < len(crowd) {
			return fmt.Errorf("%d of %d have changed", changed, len(crowd))
		}
		return nil
	})
	if err != nil {
		return 0, used{}, err
	}
	then, err := w.usage()
	if err != nil {
		return 0, used{}, err
	}
	if err := w.idle(ctx); err != nil {
		return 0, used{}, err
	}
	after, err := w.usage()
	return last(watcher, crowd).Sub(started), used{until: then.since(before), after: after.since(then)}, err
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

// unequal is how many changes too few or too many workloads have had.
func unequal(watcher *observe.Watcher, workloads []observe.Workload, want int) int {
	off := 0
	for _, workload := range workloads {
		off += max(len(watcher.Changes(workload))-want, want-len(watcher.Changes(workload)))
	}
	return off
}

// noopWebhook starts the webhook that does nothing and registers it.
func (w *world) noopWebhook(ctx context.Context) error {
	address, err := w.startNoophook(ctx)
	if err != nil {
		return err
	}
	return w.register(ctx, "noophook", address, noop)
}

// noop is the label of workloads whose writes go through the webhook that does nothing.
var noop = map[string]string{"floor": "noop"}

// startNoophook starts the webhook that does nothing and returns its address.
func (w *world) startNoophook(ctx context.Context) (string, error) {
	address, err := w.address()
	if err != nil {
		return "", err
	}
	directory, err := w.certificate("noophook")
	if err != nil {
		return "", err
	}
	err = w.startFloor(ctx, "noophook", address, address, directory)
	return address, err
}

func rounded(durations []time.Duration) []time.Duration {
	var short []time.Duration
	for _, d := range durations {
		short = append(short, d.Round(time.Millisecond))
	}
	return short
}
