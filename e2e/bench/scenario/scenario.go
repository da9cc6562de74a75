// Package scenario has the benchmarks: each makes something happen on a real control plane, and returns what an outside
// watcher, the audit log or the kernel reports about it, beside what the least program that does the same job needs
// (e2e/bench/floor). Nothing in here asks pod-reloader how fast it was.
//
// A scenario is a function in the list of scenarios, which names the setup that it needs: a control plane with an
// installation. [Bench.Run] starts each setup once, as an environment, and runs its scenarios in it, one after the other.
// The methods of the environment are what several scenarios use (environment.go, object.go, replicas.go, link.go); its
// parts are the floors of the present scenario (floors.go) and the profiles (profiler.go). What one scenario needs is in
// its file: functions, or a type with methods that embeds the environment.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
)

// Sizes say how much is measured.
type Sizes struct {
	// Samples are measured of each side of the latency scenario, in alternating blocks; ChainSamples of each of the chain.
	Samples, ChainSamples, Block int
	// Workloads depend on the one ConfigMap of the fan-out, which is changed Rounds times, and once before that, to warm up.
	Workloads, Rounds int
	// WideWorkloads and WideRounds are those of the wide fan-out, which has no round to warm up: the fan-out has done so.
	WideWorkloads, WideRounds int
	// Reloads are counted request by request.
	Reloads int
	// Bursts, Edits, Releases, Applies and Changes are repetitions of what must restart a workload once, or not at all.
	Bursts, Edits, Releases, Applies, Changes int
	// Constant is the number of workloads of the one ConfigMap that is written all the time, for the time ConstantFor.
	Constant    int
	ConstantFor time.Duration
	// Secrets are what memory must not depend on; their payloads have Small or Large bytes.
	Secrets, Small, Large int
	// Deployments is the number of workloads of a big cluster; it has as many ConfigMaps, and as many Secrets.
	Deployments int
	// Links is the number of custom resources in a large graph.
	Links int
	// Huge is the number of workloads of the largest cluster, HugeChanges that of the changes that are timed there.
	Huge, HugeChanges int
	// Tracking is the number of workloads of the one ConfigMap that is deleted, and created again, Deletions times.
	Tracking, Deletions int
	// Grown is the number of workloads of a cluster in which an event must cost what it does among GrownFrom, at least 500. GrownRounds is how
	// often that is measured for each type of event.
	Grown, GrownFrom, GrownRounds int
	// Rest is for how long nothing happens there after that.
	Rest time.Duration
	// Looks is how often the resident memory is looked at for one figure, their median.
	Looks int
	// Rate is that of admission reviews a second, for the time Load, so many times.
	Rate  int
	Load  time.Duration
	Loads int
	// LoadFor is how long the load test of Reloader writes; LoadShare divides its numbers of objects and workloads.
	LoadFor   time.Duration
	LoadShare int
	// Writes are the least that users make during each of the events that must not disturb them.
	Writes int
	// Crashes has leaders end without giving up their lease, which takes 15 s each.
	Crashes bool
	// Objects are watched by a cache that is filled Syncs times.
	Objects, Syncs int
	// BenchTime is how long each of the Go benchmarks runs, BenchTimes how often: as for go test.
	BenchTime  string
	BenchTimes int
	// StartTime is how long the one of a start with 1,000 workloads runs.
	StartTime string
}

// Full are the sizes that the budgets are for.
func Full() Sizes {
	return Sizes{
		Samples: 200, ChainSamples: 100, Block: 10,
		Workloads: 300, Rounds: 7,
		WideWorkloads: 3000, WideRounds: 3,
		Reloads: 40,
		Bursts:  5, Edits: 50, Releases: 30, Applies: 20, Changes: 50,
		Constant: 150, ConstantFor: 20 * time.Second,
		Secrets: 3000, Small: 1 << 10, Large: 20_000,
		Looks: 12, Deployments: 10_000, Links: 10_000,
		Huge: 100_000, HugeChanges: 20,
		Tracking: 10_000, Deletions: 1,
		Grown: 20_000, GrownFrom: 1000, GrownRounds: 3, Rest: 65 * time.Second,
		Rate: 200, Load: 2 * time.Second, Loads: 5,
		LoadFor: 15 * time.Second, LoadShare: 1,
		Writes: 200, Crashes: true,
		Objects: 10_000, Syncs: 2,
		BenchTime: "500ms", BenchTimes: 3, StartTime: "2s",
	}
}

// Quick are the sizes of a smoke test. What they measure in time and memory means nothing.
func Quick() Sizes {
	return Sizes{
		Samples: 6, ChainSamples: 6, Block: 3,
		Workloads: 8, Rounds: 2,
		WideWorkloads: 16, WideRounds: 1,
		Reloads: 4,
		Bursts:  1, Edits: 5, Releases: 3, Applies: 3, Changes: 4,
		Constant: 8, ConstantFor: 2 * time.Second,
		Secrets: 20, Small: 1 << 10, Large: 20_000,
		Looks: 2, Deployments: 20, Links: 40,
		Huge: 2000, HugeChanges: 2,
		Tracking: 200, Deletions: 2,
		Grown: 1000, GrownFrom: 500, GrownRounds: 1, Rest: time.Second,
		Rate: 50, Load: time.Second, Loads: 1,
		LoadFor: time.Second, LoadShare: 5,
		Writes:  10,
		Objects: 50, Syncs: 2,
		BenchTime: "100x", BenchTimes: 1, StartTime: "2x",
	}
}

// Bench runs scenarios.
type Bench struct {
	Sizes Sizes
	// Progress gets lines about what is going on.
	Progress io.Writer
	// AtOnce runs the scenarios of all setups at the same time, for a smoke test: they then disturb each other, and much of their time is
	// waiting. Otherwise only those run at the same time whose figures are counts, or times of seconds that are spent waiting.
	AtOnce bool
	// Profiles is a directory for profiles of pod-reloader, which then runs as a single replica; empty means none. Taking
	// profiles disturbs what is measured.
	Profiles string
}

// scenario is one benchmark and the setup that it needs.
type scenario struct {
	name  string
	setup setup
	run   run
}

// run does what a scenario is about and returns its figures.
type run func(ctx context.Context, e *environment) ([]figure.Figure, error)

// inWatchedNamespace returns a scenario that runs in a namespace with its name, the workloads of which are watched.
func inWatchedNamespace(do run) run {
	return func(ctx context.Context, e *environment) ([]figure.Figure, error) {
		if err := e.createWatchedNamespace(ctx); err != nil {
			return nil, err
		}
		return do(ctx, e)
	}
}

// scenarios returns all of them, those with the same setup together.
func scenarios() []scenario {
	return []scenario{
		{"latency", bare, inWatchedNamespace(latency)},
		{"fan-out", bare, inWatchedNamespace(fanOut)},
		{"admission", bare, admission},
		{"fan-out-wide", bare, inWatchedNamespace(wideFanOut)},
		{"chain", bare, inWatchedNamespace(chain)},
		{"requests", complete, inWatchedNamespace(requests)},
		{"dialect", complete, inWatchedNamespace(dialect)},
		{"sharing", complete, inWatchedNamespace(sharing)},
		{"burst", loaded, inWatchedNamespace(burst)},
		{"reloader-load", loaded, reloaderLoad},
		{"reloader-annotations", loaded, annotationsLoad},
		{"availability", disturbed, inWatchedNamespace(availability)},
		{"memory", bulk, memory},
		{"constant-change", bulk, inWatchedNamespace(constantChange)},
		{"graph", bulk, inWatchedNamespace(graph)},
		{"scale", bulk, scale}, // the last with its setup: its workloads stay, and would be part of what the others hold
		{"huge", empty, huge},
		{"deletion", empty, deletion},
		{"growth", empty, growth},
		{"watch-sync", empty, watchSync},
		{"watch-events", empty, watchEvents},
		{"resolving", empty, resolving},
		{"rest", empty, resting},
	}
}

// Names are those of all scenarios.
func Names() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// Run runs the named scenarios and returns what they found. One that fails does not keep the others from running; the
// error joins the failures.
func (b Bench) Run(ctx context.Context, names []string) ([]figure.Figure, error) {
	found, failures := make([][]figure.Figure, setups), make([]error, setups)
	var group errgroup.Group
	for _, together := range [][]setup{{bare}, {complete, loaded, disturbed}, {bulk}, {empty}} {
		for _, setup := range together {
			group.Go(func() error {
				found[setup], failures[setup] = b.runWith(ctx, setup, needing(setup, names))
				return nil
			})
		}
		if !b.AtOnce {
			_ = group.Wait() // each has kept its error
		}
	}
	_ = group.Wait()
	return slices.Concat(found...), errors.Join(failures...)
}

// needing returns the named scenarios that need a setup.
func needing(setup setup, names []string) (some []scenario) {
	for _, s := range scenarios() {
		if s.setup == setup && slices.Contains(names, s.name) {
			some = append(some, s)
		}
	}
	return some
}

// runWith starts a setup and runs scenarios, one after the other.
func (b Bench) runWith(ctx context.Context, setup setup, scenarios []scenario) (found []figure.Figure, err error) {
	if len(scenarios) == 0 {
		return nil, nil
	}
	e, err := b.start(ctx, setup)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	var failures []error
	for _, s := range scenarios {
		started := time.Now()
		e.begin(s.name)
		figures, err := s.run(ctx, e)
		e.end()
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", s.name, err))
		}
		for _, f := range figures {
			f.Scenario = s.name
			found = append(found, f)
		}
		fmt.Fprintf(b.Progress, "%s: done in %s\n", s.name, time.Since(started).Round(100*time.Millisecond))
	}
	return found, errors.Join(failures...)
}
