package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// programs are those that this process has built, by their paths. Go's cache makes another build quick, but not free: it links the program.
var programs sync.Map

// Build compiles a main package of this repository, by its path from the root ("." is pod-reloader itself), once in a process, and
// returns the executable. It is safe to call from several processes at once. Where the variable POD_RELOADER_PROGRAM is set, as by
// make, pod-reloader is there, built already.
func Build(ctx context.Context, path string) (string, error) {
	if built := os.Getenv("POD_RELOADER_PROGRAM"); path == "." && built != "" {
		return built, nil
	}
	if built, ok := programs.Load(path); ok {
		return built.(string), nil
	}
	built, err := build(ctx, path)
	if err == nil {
		programs.Store(path, built)
	}
	return built, err
}

func build(ctx context.Context, path string) (string, error) {
	root, err := toolchain.Root()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", path, err)
	}
	name := filepath.Base(filepath.Join(root, path))
	if path == "." {
		name = "pod-reloader"
	}
	dir := filepath.Join(root, "bin", "e2e")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", path, err)
	}
	unlock, err := lock(filepath.Join(dir, name+".lock"))
	if err != nil {
		return "", fmt.Errorf("build %s: %w", path, err)
	}
	defer unlock()
	target := filepath.Join(dir, name)
	if err := link(ctx, root, path, target); err != nil {
		return "", fmt.Errorf("build %s: %w", path, err)
	}
	return target, nil
}

// link builds a new file, which then replaces the target. An executable that a killed build has left incomplete has the build ID of a
// complete one, and go build would take it as up to date.
func link(ctx context.Context, root, path, target string) error {
	fresh := target + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an incomplete build: %w", err)
	}
	if err := toolchain.GoBuild(ctx, root, fresh, []string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags", "-s -w", "./"+path); err != nil {
		return err
	}
	if err := os.Rename(fresh, target); err != nil {
		return fmt.Errorf("replace the program: %w", err)
	}
	return nil
}

// lock keeps two processes from linking the same program at once.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open a lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// own makes a copy of an executable, so that another build in the meantime does not change what a restart
// starts.
func own(program, directory string) (string, error) {
	from, err := os.Open(program)
	if err != nil {
		return "", fmt.Errorf("copy the program: %w", err)
	}
	defer func() { _ = from.Close() }()
	copied := filepath.Join(directory, filepath.Base(program))
	to, err := os.OpenFile(copied, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return "", fmt.Errorf("copy the program: %w", err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return "", fmt.Errorf("copy the program: %w", err)
	}
	return copied, nil
}
