package toolchain

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stampName is the file in a tool's directory that says for which pin it was built.
const stampName = ".pin"

// Builder builds tools. The zero value works: it finds the repository from the working directory
// and reports to standard error.
type Builder struct {
	// Root is the root of the repository; empty means that it is looked for.
	Root string
	// Progress gets a line when a build starts, now and then while it lasts, and when it ends; and when one of another process is waited for.
	// Nothing is written for what is built already. Nil means standard error.
	Progress io.Writer
}

// Names lists the tools that are pinned, in alphabetical order.
func (b Builder) Names() ([]string, error) {
	root, err := b.root()
	if err != nil {
		return nil, err
	}
	pins, err := filepath.Glob(filepath.Join(root, toolsDir, "*", "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	names := make([]string, 0, len(pins))
	for _, path := range pins {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	slices.Sort(names)
	return names, nil
}

// Build makes sure that the programs of a tool are there and are those of its pin, and returns the
// directory they are in. It is safe to call from several processes at once.
func (b Builder) Build(ctx context.Context, tool string) (string, error) {
	root, err := b.root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, toolsDir, tool)
	if !exists(filepath.Join(source, "go.mod")) {
		names, _ := b.Names()
		return "", fmt.Errorf("no tool %q: there are %s", tool, strings.Join(names, ", "))
	}
	want, err := fingerprint(source)
	if err != nil {
		return "", err
	}
	target := filepath.Join(root, "bin", tool)
	if built(target, want) {
		return target, nil
	}
	unlock, err := lock(ctx, target+".lock", func() {
		fmt.Fprintf(b.progress(), "waiting for another process that builds %s ...\n", tool)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if built(target, want) { // by whom we waited for
		return target, nil
	}
	if err := b.build(ctx, source, target, want); err != nil {
		return "", fmt.Errorf("build %s: %w", tool, err)
	}
	return target, nil
}

func (b Builder) root() (string, error) {
	if b.Root != "" {
		return b.Root, nil
	}
	return Root()
}

func (b Builder) progress() io.Writer {
	if b.Progress != nil {
		return b.Progress
	}
	return os.Stderr
}

func built(target, want string) bool {
	have, err := os.ReadFile(filepath.Join(target, stampName))
	return err == nil && string(have) == want
}

// build compiles into a directory beside the target and then swaps them, so that no process ever sees
// half a tool. Running programs of the old one keep their files.
func (b Builder) build(ctx context.Context, source, target, stamp string) error {
	p, err := readPin(ctx, source)
	if err != nil {
		return err
	}
	packages, err := p.packages(source)
	if err != nil {
		return err
	}
	fresh := target + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("clear an unfinished build: %w", err)
	}
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return fmt.Errorf("make a directory for the build: %w", err)
	}
	done := b.report(filepath.Base(target))
	// The separator has go build write into the directory.
	err = GoBuild(ctx, source, fresh+string(filepath.Separator), []string{"CGO_ENABLED=0", "GOWORK=off"},
		append([]string{"-mod=readonly", "-buildvcs=false", "-ldflags", p.linkerFlags()}, packages...)...)
	done(err)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, stampName), []byte(stamp), 0o644); err != nil {
		return fmt.Errorf("stamp the build: %w", err)
	}
	if err := os.RemoveAll(target); err != nil {
		return fmt.Errorf("remove the old build: %w", err)
	}
	if err := os.Rename(fresh, target); err != nil {
		return fmt.Errorf("put the new build in place: %w", err)
	}
	return nil
}

// report writes the progress of a build until the returned function is called.
func (b Builder) report(tool string) (done func(error)) {
	begun := time.Now()
	fmt.Fprintf(b.progress(), "building %s (once; from a cold cache this takes minutes) ...\n", tool)
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(30 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(b.progress(), "building %s ... %s\n", tool, elapsed(begun))
			case <-stop:
				return
			}
		}
	}()
	return func(err error) {
		close(stop)
		<-stopped
		outcome := "built"
		if err != nil {
			outcome = "could not build"
		}
		fmt.Fprintf(b.progress(), "%s %s in %s\n", outcome, tool, elapsed(begun))
	}
}

func elapsed(begun time.Time) time.Duration {
	return time.Since(begun).Round(100 * time.Millisecond)
}
