// Command cluster runs a control plane until Ctrl-C and prints how to use it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	begun := time.Now()
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	root, err := toolchain.Root()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "Kubernetes %s is ready after %s. In another terminal:\n\n",
		cp.Version(), time.Since(begun).Round(100*time.Millisecond))
	fmt.Printf("export KUBECONFIG=%s\n", cp.AdminKubeconfig())
	fmt.Printf("export PATH=%s:$PATH\n", filepath.Join(root, "bin", "kubernetes-"+cp.Version()))
	fmt.Fprintln(os.Stderr, "\nCtrl-C ends it.")
	<-ctx.Done()
	return cp.Stop()
}
