// Command planted proves that the simulator finds faults: it builds the program with one fault of testdata/planted.yaml at a
// time, and hunts until a law is broken that the program as it is keeps. `make simulate-planted` runs it.
package main

import (
	"context"
	"errors"
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

// settings say which faults are hunted, and how long each.
type settings struct {
	faults []simulate.Planted
	limit  time.Duration
	n      int
	seed   uint64
}

// String says how much was hunted.
func (o settings) String() string {
	if o.n > 0 {
		return strconv.Itoa(o.n) + " histories"
	}
	return o.limit.String()
}

const (
	exitMissed = 1
	exitUsage  = 2
)

func main() {
	all, err := simulate.ReadPlanted()
	if err != nil {
		end(err, exitMissed)
	}
	o, err := readArguments(os.Args[1:], all)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		end(err, exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		end(err, exitMissed)
	}
}

func end(err error, code int) {
	fmt.Fprintln(os.Stderr, "planted:", err)
	os.Exit(code)
}

// readArguments reads the command line, and chooses among all faults.
func readArguments(args []string, all []simulate.Planted) (settings, error) {
	var o settings
	set := flag.NewFlagSet("planted", flag.ContinueOnError)
	set.DurationVar(&o.limit, "for", 5*time.Minute, "how long to hunt for each fault, unless -n says how many histories")
	set.IntVar(&o.n, "n", 0, "how many histories to run for each fault; 0 goes by -for")
	set.Uint64Var(&o.seed, "seed", 1, "the first `seed`")
	only := set.String("only", "", "only the faults whose names match this `expression`")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	expression, err := regexp.Compile(*only)
	switch {
	case err != nil:
		return o, fmt.Errorf("-only: %w", err)
	case set.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; -only chooses among the faults", set.Arg(0))
	case o.n < 0:
		return o, fmt.Errorf("-n %d: want a number of histories, or 0", o.n)
	case o.limit <= 0:
		return o, fmt.Errorf("-for %s: want a time", o.limit)
	}
	for _, fault := range all {
		if expression.MatchString(fault.Name) {
			o.faults = append(o.faults, fault)
		}
	}
	if len(o.faults) == 0 {
		return o, fmt.Errorf("-only %s: matches none of the %d names in testdata/planted.yaml, such as %s", *only, len(all), all[0].Name)
	}
	return o, nil
}

func run(ctx context.Context, o settings) error {
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
	for _, fault := range o.faults {
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
	sound.args = argumentsFor(fault)
	faulty.args = sound.args
	return o.search(ctx, sound, faulty, fault.Is)
}

// argumentsFor returns the arguments of a hunt for a fault.
func argumentsFor(fault simulate.Planted) []string {
	var args []string
	if len(fault.Flags) > 0 {
		args = append(args, "-flags", strings.Join(fault.Flags, " "))
	}
	if fault.Graph {
		args = append(args, "-graph")
	}
	if fault.Restarts {
		args = append(args, "-restarts")
	}
	if fault.Theme != "" {
		args = append(args, "-theme", fault.Theme)
	}
	if fault.Situation != "" {
		args = append(args, "-situation", fault.Situation)
	}
	return args
}

// search hunts for what the faulty program breaks. A seed by which the sound one breaks a law, too, or the faulty one breaks another
// law first, proves nothing: the search goes on behind it.
func (o settings) search(ctx context.Context, sound, faulty hunter, wanted func(signature string) bool) (result, error) {
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
		if !wanted(found.law) {
			seed = found.seed + 1
			continue
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
