package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// mutant is one change of the code, and what became of it.
type mutant struct {
	// File is relative to the package, Line counts from 1.
	File string
	Line int
	// Type is the kind of change, Status what the tests made of it, both in the words of gremlins.
	Type, Status string
	// Code is the line that was changed, without white space around it.
	Code string
}

// The statuses that count.
const (
	killed   = "KILLED"
	lived    = "LIVED"
	timedOut = "TIMED OUT"
	// notCovered is a mutant in code that no test of the package reaches: it survives without a run.
	notCovered = "NOT COVERED"
	// runnable is what a dry run says of a mutant that would be tested.
	runnable = "RUNNABLE"
)

// export copies the tracked files, as they are in the working directory, to a directory of their own: gremlins copies the
// whole module for each worker, and bin/ is large.
func export(ctx context.Context) (string, error) {
	tree, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", err
	}
	const script = `git ls-files -z | tar --null --create --files-from - | tar --extract --directory "$1"`
	if out, err := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script, "export", tree).CombinedOutput(); err != nil {
		return tree, fmt.Errorf("copy the tracked files: %w: %s", err, out)
	}
	return tree, nil
}

// unleasher runs gremlins on a copy of the module.
type unleasher struct {
	gremlins, tree string
	workers        int
	sample         sample
	// dry finds the mutants that no test reaches, and tests none.
	dry bool
}

// unleash mutates one package and returns its mutants.
func (u unleasher) unleash(ctx context.Context, dir string) ([]mutant, error) {
	switch {
	case u.dry:
		return u.run(ctx, dir, "--dry-run")
	case u.sample.size == 0:
		return u.run(ctx, dir)
	}
	all, err := u.run(ctx, dir, "--dry-run")
	if err != nil {
		return nil, err
	}
	lines := u.sample.choose(all)
	if len(lines) == 0 {
		return nil, nil
	}
	if err := commitOthers(ctx, filepath.Join(u.tree, dir), lines); err != nil {
		return nil, err
	}
	return u.run(ctx, dir, "--diff", "HEAD")
}

// run starts gremlins for one package. The tests alone judge: vet would find some mutants, and takes as long as compiling. A package
// below it whose name ends with test is a part of tests: it is not mutated.
func (u unleasher) run(ctx context.Context, dir string, flags ...string) ([]mutant, error) {
	bin, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	env, err := shim(bin, u.tree, dir)
	if err != nil {
		return nil, err
	}
	report := filepath.Join(u.tree, "mutants.json")
	args := append([]string{
		"unleash", "--silent", "--output", report, "--workers", strconv.Itoa(u.workers),
		"--timeout-coefficient", "8", "--invert-logical", "--invert-loopctrl",
		"--exclude-files", "test/",
	}, flags...)
	cmd := exec.CommandContext(ctx, u.gremlins, append(args, "./"+dir)...)
	cmd.Dir = u.tree
	cmd.Env = append(append(os.Environ(), env...), "GIT_DIR="+filepath.Join(u.tree, dir, ".git"), "GIT_WORK_TREE="+filepath.Join(u.tree, dir),
		"GOFLAGS="+os.Getenv("GOFLAGS")+" -vet=off -ldflags=-w")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	body, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	return parse(body, func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(u.tree, dir, file)) })
}

// parse reads the report of gremlins; source returns the code of a file.
func parse(body []byte, source func(file string) ([]byte, error)) ([]mutant, error) {
	var report struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type, Status string
				Line         int
			}
		}
	}
	if err := json.Unmarshal(body, &report); err != nil {
		return nil, fmt.Errorf("decode the report of gremlins: %w", err)
	}
	var found []mutant
	for _, file := range report.Files {
		code, err := source(file.Name)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(code), "\n")
		for _, m := range file.Mutations {
			if m.Line < 1 || m.Line > len(lines) {
				return nil, fmt.Errorf("%s has no line %d", file.Name, m.Line)
			}
			found = append(found, mutant{File: file.Name, Line: m.Line, Type: m.Type, Status: m.Status, Code: strings.TrimSpace(lines[m.Line-1])})
		}
	}
	return found, nil
}
