// Command tools builds the pinned programs of e2e/tools into bin/, so that a later run of the tests
// does not have to.
//
//	go run ./e2e/cmd/tools build [tool…]     build these, or all
//	go run ./e2e/cmd/tools path tool program build the tool if need be and print the program's path
//	go run ./e2e/cmd/tools list              name the tools
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var builder toolchain.Builder
	switch {
	case len(args) > 0 && args[0] == "build":
		return build(ctx, builder, args[1:])
	case len(args) == 3 && args[0] == "path":
		dir, err := builder.Build(ctx, args[1])
		if err != nil {
			return err
		}
		fmt.Println(filepath.Join(dir, args[2]))
		return nil
	case len(args) == 1 && args[0] == "list":
		names, err := builder.Names()
		for _, name := range names {
			fmt.Println(name)
		}
		return err
	default:
		return errors.New("usage: tools build [tool…] | path tool program | list")
	}
}

func build(ctx context.Context, builder toolchain.Builder, names []string) error {
	if len(names) == 0 {
		all, err := builder.Names()
		if err != nil {
			return err
		}
		names = all
	}
	for _, name := range names {
		if _, err := builder.Build(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
