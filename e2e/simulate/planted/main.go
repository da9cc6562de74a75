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
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
)

func main() {
	limit := flag.Duration("for", 5*time.Minute, "how long to hunt for each fault")
	seed := flag.Uint64("seed", 1, "the first `seed`")
	only := flag.String("only", "", "only the faults whose names match this `expression`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *seed, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, seed uint64, limit time.Duration) error {
	expression, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	faults, err := simulate.ReadPlanted()
	if err != nil {
		return err
	}
	var missed []error
	for _, fault := range faults {
		if !expression.MatchString(fault.Name) {
			continue
		}
		report, err := hunt(ctx, fault, seed, limit)
		if err != nil {
			missed = append(missed, fmt.Errorf("%s: %w", fault.Name, err))
			report = "NOT FOUND: " + err.Error()
		}
		fmt.Printf("%-45s %s\n", fault.Name, report)
	}
	return errors.Join(missed...)
}

// hunt builds the hunter with a fault in it, and returns what it finds.
func hunt(ctx context.Context, fault simulate.Planted, seed uint64, limit time.Duration) (string, error) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := build(ctx, fault, dir)
	if err != nil {
		return "", err
	}
	started := time.Now()
	cmd := exec.CommandContext(ctx, program, "-first", "-for", limit.String(), "-seed", fmt.Sprint(seed), "-out", dir)
	out, err := cmd.Output()
	took := time.Since(started).Round(time.Second)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", fmt.Errorf("no law is broken in %s", took)
	case !errors.As(err, &exit):
		return "", err
	}
	return fmt.Sprintf("found in %s: %s", took, firstLine(out)), nil
}

func firstLine(out []byte) string {
	for i, b := range out {
		if b == '\n' {
			return string(out[:i])
		}
	}
	return string(out)
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
