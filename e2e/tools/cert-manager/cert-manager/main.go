// Command cert-manager runs the controllers of cert-manager that the certificate in manifests/ needs, and its CA
// injector, in one process. cert-manager does not publish its own mains as modules; the controllers are the real ones,
// with the options that its mains have by default. Left out are the other issuers (ACME, Vault, Venafi) and the webhook,
// which only checks what users write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Libraries put flags of their own into flag.CommandLine.
	flags := flag.NewFlagSet("cert-manager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of the kubeconfig")
	health := flags.String("health-probe-bind-address", "127.0.0.1:9402", "where /readyz is")
	_ = flags.Parse(os.Args[1:]) // it exits where they are wrong
	if err := run(ctx, *kubeconfig, *health); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

// run ends with the context, or with the first part that fails.
func run(ctx context.Context, kubeconfig, health string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := []func() error{
		func() error { return runControllers(ctx, kubeconfig) },
		func() error { return runInjector(ctx, kubeconfig, health) },
	}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			defer cancel()
			ended <- part()
		}()
	}
	var failures error
	for range parts {
		failures = errors.Join(failures, <-ended)
	}
	return failures
}
