// pod-reloader restarts the workloads whose running pods no longer match their configuration. Without a sub-command it
// runs the manager: the admission webhook and the loop.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pod-reloader/pod-reloader/pkg/cli"
)

// version is set by the linker (-X main.version=…).
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the operating system's own behavior is back: a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, cli.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Version: version,
	}))
}
