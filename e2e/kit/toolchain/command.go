package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// GoBuild runs go build in a directory, with the environment of this process and more. A go command that is killed leaves what it has
// written, up to some hundred megabytes: here it is beside the target, in a directory that is removed afterwards, or by the next build
// if this process is killed as well.
func GoBuild(ctx context.Context, dir, target string, more []string, args ...string) error {
	// go list ./... leaves out names that begin with a point.
	parent, name := filepath.Split(filepath.Clean(target))
	temporary := filepath.Join(parent, "."+name+".tmp")
	if err := os.RemoveAll(temporary); err != nil {
		return fmt.Errorf("clear an unfinished build: %w", err)
	}
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return fmt.Errorf("make a directory for temporary files: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	args = append([]string{"build", "-o", target}, args...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(append(os.Environ(), "GOTMPDIR="+temporary), more...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// withOutput adds what a command has written to standard error, which the error of Output has but does not print.
func withOutput(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
