// Bench measures pod-reloader against its budgets: durations and memory beside what the least program that does the same
// job needs on the same machine in the same run, and counts that have one right value. It boots its own control planes,
// runs pod-reloader as the manifests ship it, and reports what an outside watcher, the audit log and the kernel saw.
//
// The result is a table on standard output and a JSON file. The exit code is 1 when a figure is over its budget or a
// scenario failed, 2 when the arguments are wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/bench/scenario"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program but for the process; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	names := flags.String("scenario", strings.Join(scenario.Names(), ","), "the scenarios to run, comma-separated")
	quick := flags.Bool("quick", false, "a smoke test: tiny sizes, and no verdict on durations and memory")
	path := flags.String("json", "bench.json", "the file for the figures as JSON; empty: none")
	profiles := flags.String("profiles", "", "a directory for profiles of pod-reloader; the figures are then not to be trusted")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	selected, err := choose(*names)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	bench := scenario.Bench{Sizes: scenario.Full(), Progress: &lines{to: stderr}, Profiles: *profiles}
	if *quick {
		bench.Sizes, bench.AtOnce = scenario.Quick(), true
	}
	began := time.Now()
	figures, failure := bench.Run(ctx, selected)
	if len(selected) == len(scenario.Names()) {
		figures = append(figures, whole(time.Since(began)))
	}
	report := figure.Report{Figures: figures, CountsOnly: *quick}
	if err := errors.Join(failure, report.WriteTable(stdout), store(report, *path)); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if over := report.Over(); len(over) > 0 {
		fmt.Fprintf(stderr, "%d figures are over their budgets\n", len(over))
		return 1
	}
	return 0
}

// longest is how long a run of all scenarios may take: a benchmark that takes longer is not run.
const longest = 12 * time.Minute

// whole is the figure of a run of all scenarios.
func whole(took time.Duration) figure.Figure {
	return figure.Figure{Scenario: "all", Name: "the run of all scenarios", Unit: figure.Seconds, Value: took.Seconds(), Budget: figure.AtMost(longest.Seconds())}
}

// lines takes writes one at a time.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

// Write passes it on.
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(text)
}

// choose splits a list of names; all that are unknown are named at once.
func choose(list string) ([]string, error) {
	var unknown []error
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(scenario.Names(), name) {
			unknown = append(unknown, fmt.Errorf("no scenario %q; there are %s", name, strings.Join(scenario.Names(), ", ")))
		}
	}
	return names, errors.Join(unknown...)
}

func store(report figure.Report, path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create the file for the figures: %w", err)
	}
	return errors.Join(report.WriteJSON(file), file.Close())
}
