// Command hunt looks for histories that break a promise: it draws them from seeds, runs each in the simulator, shortens
// those that fail, and says what happened in words. `make simulate` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
)

const (
	exitFound = 1
	exitUsage = 2
)

// settings are the command line.
type settings struct {
	seed      uint64
	n, steps  int
	faults    bool
	flags     []string
	lasting   time.Duration
	workers   int
	shrink    int
	replay    string
	out       string
	profile   string
	situation string
	theme     string
	graph     bool
	restarts  bool
	report    bool
	first     bool
	verbose   bool
}

func main() {
	if simulate.IsWorker() {
		simulate.RunWorker()
		return
	}
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found, err := run(ctx, o)
	var usage *simulate.UsageError
	switch {
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(exitUsage)
	case err != nil:
		fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(exitFound)
	case found && !o.report:
		os.Exit(exitFound)
	}
}

func parse(args []string) (settings, error) {
	var o settings
	set := flag.NewFlagSet("hunt", flag.ContinueOnError)
	set.Uint64Var(&o.seed, "seed", 0, "the first `seed`; 0 takes one from the clock")
	set.IntVar(&o.n, "n", 0, "how many histories; 0 goes by -for")
	set.IntVar(&o.steps, "steps", 100, "steps of a history")
	set.BoolVar(&o.faults, "faults", true, "let faults happen")
	set.Func("flags", "start the program with these `flags`, separated by blanks, instead of drawn ones", func(text string) error {
		o.flags = strings.Fields(text)
		return nil
	})
	set.DurationVar(&o.lasting, "for", 2*time.Minute, "how long to go on, unless -n says how many")
	set.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many processes run histories at the same time")
	set.StringVar(&o.replay, "replay", "", "run the history in this `file` instead")
	set.StringVar(&o.out, "out", "bin/histories", "`directory` for the histories that fail")
	set.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of each worker into this `file`, with the process number added")
	set.StringVar(&o.situation, "situation", "", "end every history with the situation of this `name`: "+strings.Join(simulate.SituationNames(), ", "))
	set.StringVar(&o.theme, "theme", "", "give every history acts of the theme of this `name`: "+strings.Join(simulate.ThemeNames(), ", "))
	set.BoolVar(&o.graph, "graph", false, "give every history custom resources that refer to each other")
	set.BoolVar(&o.restarts, "restarts", false, "give every history an Argo Rollout that is restarted without a new template")
	set.BoolVar(&o.report, "report", false, "only report: exit with 0 also when a history fails")
	set.BoolVar(&o.first, "first", false, "end at the first finding, which is not made shorter")
	set.IntVar(&o.shrink, "shrink", 200, "how many `runs` may be spent on making a failing history shorter")
	set.BoolVar(&o.verbose, "v", false, "with -replay: print everything that happens")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; -replay runs a file", set.Arg(0))
	}
	if err := o.check(); err != nil {
		return o, err
	}
	if err := o.checkReplay(set); err != nil {
		return o, err
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	return o, nil
}

// check names the setting that makes no sense.
func (o settings) check() error {
	switch {
	case o.n < 0:
		return fmt.Errorf("-n %d: want a number of histories, or 0", o.n)
	case o.steps < 1 || o.steps > 10_000:
		return fmt.Errorf("-steps %d: want 1 to 10000", o.steps)
	case o.workers < 1:
		return fmt.Errorf("-workers %d: want at least 1", o.workers)
	case o.shrink < 0:
		return fmt.Errorf("-shrink %d: want a number of runs, or 0", o.shrink)
	case o.lasting <= 0:
		return fmt.Errorf("-for %s: want a time", o.lasting)
	}
	if err := errors.Join(oneOf("situation", o.situation, simulate.SituationNames()), oneOf("theme", o.theme, simulate.ThemeNames())); err != nil {
		return err
	}
	if err := simulate.CheckFlags(o.flags); err != nil {
		return fmt.Errorf("-flags of pod-reloader: %w", err)
	}
	if o.profile != "" { // the workers write it, whose failures count as findings
		if _, err := os.Stat(filepath.Dir(o.profile)); err != nil {
			return fmt.Errorf("-cpuprofile: %w; create the directory", err)
		}
	}
	return nil
}

// oneOf checks a setting that names something, or nothing.
func oneOf(setting, value string, names []string) error {
	if value == "" || slices.Contains(names, value) {
		return nil
	}
	return fmt.Errorf("-%s %s: want one of %s", setting, value, strings.Join(names, ", "))
}

// checkReplay refuses what says which histories are drawn where none is, and -v where many are.
func (o settings) checkReplay(set *flag.FlagSet) error {
	if o.replay == "" {
		if o.verbose {
			return errors.New("-v needs -replay, which runs one history")
		}
		return nil
	}
	var err error
	set.Visit(func(f *flag.Flag) {
		if !slices.Contains([]string{"replay", "v", "report"}, f.Name) && err == nil {
			err = fmt.Errorf("-%s does not go with -replay: the file says all of it", f.Name)
		}
	})
	return err
}

func run(ctx context.Context, o settings) (found bool, err error) {
	if o.replay != "" {
		return simulate.Replay(ctx, os.Stdout, o.replay, o.verbose)
	}
	draw := simulate.DrawOptions{Steps: o.steps, Faults: o.faults, Flags: o.flags, Situation: o.situation, Theme: o.theme, Graph: o.graph, Restarts: o.restarts}
	return simulate.Hunt(ctx, os.Stdout, simulate.HuntOptions{
		Seed: o.seed, N: o.n, Draw: draw,
		For: o.lasting, Workers: o.workers, Out: o.out, First: o.first, Shrink: o.shrink, CPUProfile: o.profile,
	})
}
