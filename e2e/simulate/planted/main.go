// Command planted proves that the simulator finds faults: it builds the program with one fault of testdata/planted.yaml at a
// time, and hunts until a law is broken that the program as it is keeps. `make simulate-planted` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
)

// settings say how long each fault is hunted.
type settings struct {
	limit time.Duration
	n     int
	seed  uint64
}

// String says how much was hunted.
func (o settings) String() string {
	if o.n > 0 {
		return strconv.Itoa(o.n) + " histories"
	}
	return o.limit.String()
}

func main() {
	var o settings
	flag.DurationVar(&o.limit, "for", 5*time.Minute, "how long to hunt for each fault, unless -n says how many histories")
	flag.IntVar(&o.n, "n", 0, "how many histories to run for each fault; 0 goes by -for")
	flag.Uint64Var(&o.seed, "seed", 1, "the first `seed`")
	only := flag.String("only", "", "only the faults whose names match this `expression`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, o); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, o settings) error {
	expression, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	faults, err := simulate.ReadPlanted()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sound, err := build(ctx, dir, nil)
	if err != nil {
		return err
	}
	fmt.Printf(row, "", "FAULT", "LAW", "SEED", "HISTORIES", "TIME")
	var missed []string
	for _, fault := range faults {
		if !expression.MatchString(fault.Name) {
			continue
		}
		r, err := o.plantAndSearch(ctx, sound, fault)
		if err != nil {
			return fmt.Errorf("%s: %w", fault.Name, err)
		}
		if r.law == "" {
			missed = append(missed, fault.Name)
			fmt.Printf(row, "missed", fault.Name, "", "", "", r.took)
			continue
		}
		fmt.Printf(row, "found", fault.Name, r.law, strconv.FormatUint(r.seed, 10), strconv.FormatUint(r.seed-o.seed+1, 10), r.took)
	}
	if len(missed) > 0 {
		return fmt.Errorf("%d faults are not found in %s each: %s", len(missed), o, strings.Join(missed, ", "))
	}
	return nil
}

// row is the form of a line of the table.
const row = "%-6s  %-40s  %-45s  %9s  %9s  %s\n"

// result is what is found of a fault, and how long that took.
type result struct {
	finding
	took time.Duration
}

// plantAndSearch builds the hunter with a fault and hunts with it.
func (o settings) plantAndSearch(ctx context.Context, sound hunter, fault simulate.Planted) (result, error) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	faulty, err := plant(ctx, dir, fault)
	if err != nil {
		return result{}, err
	}
	if fault.Graph {
		sound.args, faulty.args = []string{"-graph"}, []string{"-graph"}
	}
	return o.search(ctx, sound, faulty)
}

// search hunts for what the faulty program breaks. A seed by which the sound one breaks a law, too, proves nothing: the search
// goes on behind it.
func (o settings) search(ctx context.Context, sound, faulty hunter) (result, error) {
	started := time.Now()
	took := func() time.Duration { return time.Since(started).Round(time.Second) }
	for seed := o.seed; ; {
		n, left := o.left(seed, time.Since(started))
		if left <= 0 {
			return result{took: took()}, nil
		}
		found, err := faulty.hunt(ctx, seed, n, left)
		if err != nil || found.law == "" {
			return result{took: took()}, err
		}
		without, err := sound.hunt(ctx, found.seed, 1, o.limit)
		if err != nil || without.law == "" {
			return result{found, took()}, err
		}
		seed = found.seed + 1
	}
}

// left is how many histories may still be run from a seed on, 0 if they are not counted, and for how long; nothing is left if the
// time is not positive.
func (o settings) left(seed uint64, spent time.Duration) (int, time.Duration) {
	if o.n == 0 {
		return 0, o.limit - spent
	}
	n := o.n - int(seed-o.seed)
	if n <= 0 {
		return 0, 0
	}
	return n, o.limit
}
