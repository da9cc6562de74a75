package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/demo/narration"
)

// manyLines is how much of a command's output is shown when only its gist matters.
const manyLines = 3

// shell runs commands and shows them: what it prints is the very argument vector that it runs.
type shell struct {
	narrator *narration.Narrator
	// programs are the executables by the name that one types.
	programs map[string]string
	// env is added to the environment, dir is where commands run.
	env []string
	dir string
}

// result of a command that ran.
type result struct {
	stdout, stderr string
	exitCode       int
	// ended is when it ended.
	ended time.Time
}

// run shows and runs a command that must succeed, and shows what it prints.
func (s *shell) run(ctx context.Context, argv ...string) (result, error) {
	return must(argv)(s.try(ctx, argv...))
}

// brief is run for a command that prints much: it shows the beginning.
func (s *shell) brief(ctx context.Context, argv ...string) (result, error) {
	r, err := s.execute(ctx, argv)
	lines := strings.SplitAfter(strings.TrimRight(r.stdout, "\n"), "\n")
	if len(lines) > manyLines+1 {
		more := fmt.Sprintf("… and %d more", len(lines)-manyLines)
		lines = append(lines[:manyLines:manyLines], more)
	}
	s.narrator.Output(strings.Join(lines, ""))
	s.narrator.Stderr(r.stderr, "pod-reloader")
	return must(argv)(r, err)
}

// try is run for a command that may fail.
func (s *shell) try(ctx context.Context, argv ...string) (result, error) {
	r, err := s.execute(ctx, argv)
	s.narrator.Output(r.stdout)
	s.narrator.Stderr(r.stderr, "pod-reloader")
	return r, err
}

func must(argv []string) func(result, error) (result, error) {
	return func(r result, err error) (result, error) {
		if err == nil && r.exitCode != 0 {
			err = fmt.Errorf("%s exited with %d", narration.Quote(argv), r.exitCode)
		}
		return r, err
	}
}

func (s *shell) execute(ctx context.Context, argv []string) (result, error) {
	s.narrator.Command(argv)
	command := exec.CommandContext(ctx, s.programs[argv[0]], argv[1:]...)
	command.Args[0] = argv[0]
	command.Dir = s.dir
	command.Env = append(os.Environ(), s.env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the demo
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	r := result{stdout: stdout.String(), stderr: stderr.String(), ended: time.Now()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		r.exitCode = exit.ExitCode()
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("run %s: %w", argv[0], err)
	}
	return r, nil
}
