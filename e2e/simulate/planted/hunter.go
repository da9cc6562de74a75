package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
	"github.com/pod-reloader/pod-reloader/e2e/simulate"
)

// hunter is a built hunt command, with or without a fault in the program.
type hunter struct {
	file string
	// args are those of every hunt.
	args []string
}

// build compiles the hunter into a directory. The files of the overlay lie over those of the tree. The symbols are left out:
// linking is the most of it.
func build(ctx context.Context, dir string, overlay map[string]string) (hunter, error) {
	h := hunter{file: filepath.Join(dir, "hunt")}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return h, err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return h, err
	}
	root, err := toolchain.Root()
	if err != nil {
		return h, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-ldflags", "-s -w", "-o", h.file, "./e2e/simulate/hunt")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return h, fmt.Errorf("build it: %w\n%s", err, out)
	}
	return h, nil
}

// plant compiles the hunter with a fault into a directory.
func plant(ctx context.Context, dir string, fault simulate.Planted) (hunter, error) {
	original, patched, err := fault.Apply()
	if err != nil {
		return hunter{}, err
	}
	replacement := filepath.Join(dir, "patched.go")
	if err := os.WriteFile(replacement, patched, 0o600); err != nil {
		return hunter{}, err
	}
	return build(ctx, dir, map[string]string{original: replacement})
}

// finding is the signature of the law that a history breaks; empty if none does.
type finding struct {
	law  string
	seed uint64
}

// hunt runs histories from a seed on until one breaks a law: n of them, or as many as the time allows if n is 0.
func (h hunter) hunt(ctx context.Context, seed uint64, n int, lasting time.Duration) (finding, error) {
	args := append([]string{
		"-first", "-seed", strconv.FormatUint(seed, 10), "-n", strconv.Itoa(n),
		"-for", lasting.String(), "-out", filepath.Dir(h.file),
	}, h.args...)
	cmd := exec.CommandContext(ctx, h.file, args...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) {
		return finding{}, err
	}
	f, err := parse(out)
	if err != nil {
		return f, fmt.Errorf("%w\n%s%s", err, out, exit.Stderr)
	}
	return f, nil
}

// parse reads the first finding in what a hunt prints.
func parse(out []byte) (finding, error) {
	found := regexp.MustCompile(`(?m)^(\S+) by seed (\d+):`).FindSubmatch(out)
	if found == nil {
		return finding{}, errors.New("the hunt failed without a finding")
	}
	seed, err := strconv.ParseUint(string(found[2]), 10, 64)
	return finding{law: string(found[1]), seed: seed}, err
}
