// Command planted proves that the simulator finds faults: it builds the program with one fault of testdata/planted.yaml at a
// time, and hunts until a law is broken that the program as it is keeps. `make simulate-planted` runs it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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

// arguments are those of the hunter.
func (o settings) arguments(out string) []string {
	return []string{"-first", "-for", o.limit.String(), "-n", strconv.Itoa(o.n), "-seed", strconv.FormatUint(o.seed, 10), "-out", out}
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
	fmt.Printf(row, "", "FAULT", "LAW", "SEED", "TIME")
	var missed []string
	for _, fault := range faults {
		if !expression.MatchString(fault.Name) {
			continue
		}
		f, err := hunt(ctx, fault, o)
		if err != nil {
			return fmt.Errorf("%s: %w", fault.Name, err)
		}
		if f.law == "" {
			missed = append(missed, fault.Name)
			fmt.Printf(row, "missed", fault.Name, "", "", f.took)
			continue
		}
		fmt.Printf(row, "found", fault.Name, f.law, f.seed, f.took)
	}
	if len(missed) > 0 {
		return fmt.Errorf("%d faults are not found in %s each: %s", len(missed), o, strings.Join(missed, ", "))
	}
	return nil
}

// row is the form of a line of the table.
const row = "%-6s  %-40s  %-35s  %9s  %s\n"

// finding is what the hunter reports about a fault: the signature of the law that is broken, empty if none is.
type finding struct {
	law, seed string
	took      time.Duration
}

// hunt builds the hunter with a fault in it, and returns what it finds.
func hunt(ctx context.Context, fault simulate.Planted, o settings) (finding, error) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return finding{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := build(ctx, fault, dir)
	if err != nil {
		return finding{}, err
	}
	started := time.Now()
	cmd := exec.CommandContext(ctx, program, o.arguments(dir)...)
	out, err := cmd.Output()
	f := finding{took: time.Since(started).Round(time.Second)}
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) {
		return f, err
	}
	if f.law, f.seed, err = parse(out); err != nil {
		return f, fmt.Errorf("%w\n%s%s", err, out, exit.Stderr)
	}
	return f, nil
}

// parse reads the first finding in what a hunt prints.
func parse(out []byte) (law, seed string, err error) {
	found := regexp.MustCompile(`(?m)^(\S+) by seed (\d+):`).FindSubmatch(out)
	if found == nil {
		return "", "", errors.New("the hunt failed without a finding")
	}
	return string(found[1]), string(found[2]), nil
}

// build compiles the hunter; the file with the fault lies over that of the tree.
func build(ctx context.Context, fault simulate.Planted, dir string) (string, error) {
	original, patched, err := fault.Apply()
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, "patched.go")
	if err := os.WriteFile(replacement, patched, 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "hunt")
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", program, "./e2e/simulate/hunt")
	cmd.Dir = simulate.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build it: %w\n%s", err, out)
	}
	return program, nil
}
