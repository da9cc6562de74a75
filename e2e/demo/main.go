// Command demo shows the main job done on a real Kubernetes API server: it boots a control plane, runs pod-reloader on it
// as it is shipped, does what users do with kubectl, and compares what an outside observer sees with what was promised.
// It exits with 1 where they differ. KEEP=1 leaves everything running until Ctrl-C.
//
// Nothing in here or below imports the program: it is judged by what it does.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, options{
		out:     os.Stdout,
		colours: colourful(os.Stdout, os.Getenv),
		keep:    os.Getenv("KEEP") != "" && os.Getenv("KEEP") != "0",
	}))
}

// colourful reports whether colours are wanted: on a terminal that has them, unless https://no-color.org says no.
func colourful(file *os.File, getenv func(string) string) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && getenv("TERM") != ""
}
