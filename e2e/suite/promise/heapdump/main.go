// heapdump is pod-reloader itself with one addition: on SIGUSR1 it collects garbage twice and writes its heap to the file
// that HEAP_DUMP names, so that a test can search it for what must not be in it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/pod-reloader/pod-reloader/pkg/app"
	"github.com/pod-reloader/pod-reloader/pkg/options"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go dumpOnSignal(os.Getenv("HEAP_DUMP"))
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is what the program's own main does with a command line that is right.
func run(ctx context.Context) error {
	flags := options.NewFlags()
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	o, err := flags.Complete(options.OSEnvironment())
	if err != nil {
		return err
	}
	return app.Run(ctx, app.Host{}, o, "heapdump", o.Logging.Logger(os.Stderr))
}

func dumpOnSignal(path string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	for range signals {
		if err := dump(path); err != nil {
			fmt.Fprintln(os.Stderr, "dump the heap:", err)
		}
	}
}

// dump writes beside the path and moves the file there when it is complete.
func dump(path string) error {
	file, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	// The first collection finds what is garbage, the second what only finalizers held.
	runtime.GC()
	runtime.GC()
	debug.WriteHeapDump(file.Fd())
	return errors.Join(file.Close(), os.Rename(path+".new", path))
}
