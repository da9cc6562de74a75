// Command mutate changes the code of packages, one operator at a time, and reports which changes no unit test notices.
//
//	go run ./e2e/cmd/mutate [-list FILE] [-workers N] [-dry-run | -sample N [-seed N]] [package directory…]
//
// It exits with 1 if the tests of a package notice less than 90 % of the mutants, or if a mutant survives that the list of
// accepted survivors does not name. A mutant that no test of its package reaches survives. Each other one costs one run of these
// tests: the whole default list takes hours on two cores, so that it is a tool for contributors and no part of the checks. With
// -dry-run it runs the tests of a package once, and reports the mutants that they do not reach. With -sample it tests some mutants
// of each package, chosen by -seed, and the share is an estimate: repeat it with other seeds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// core are the packages that decide, and those that feed them. Each is mutated with the packages below it.
var core = []string{
	"pkg/annotation", "pkg/backoff", "pkg/certs", "pkg/configuration", "pkg/cronrun", "pkg/digest", "pkg/event", "pkg/explain", "pkg/jobrun",
	"pkg/pattern", "pkg/pause", "pkg/plan", "pkg/podstatus", "pkg/poke", "pkg/policy", "pkg/record", "pkg/reference", "pkg/referent",
	"pkg/scope", "pkg/skim", "pkg/stamp", "pkg/strategy", "pkg/workload",
	"pkg/chain", "pkg/configstate", "pkg/fairlimit", "pkg/inflight", "pkg/keyring", "pkg/listwatch", "pkg/outbox", "pkg/reload",
	"pkg/watch", "pkg/watchhealth", "pkg/workloadstate",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	list := flag.String("list", filepath.Join("e2e", "cmd", "mutate", "survivors.yaml"), "the `file` with the accepted survivors")
	workers := flag.Int("workers", 2, "how many mutants are tested at the same time")
	size := flag.Int("sample", 0, "how many mutants of each package are tested, at least; 0 means all")
	seed := flag.Uint64("seed", 1, "which mutants -sample chooses")
	dry := flag.Bool("dry-run", false, "report only the mutants that no test reaches")
	flag.Parse()
	packages := directories(flag.Args())
	if len(packages) == 0 {
		packages = core
	}
	if err := run(ctx, *list, unleasher{workers: *workers, sample: sample{*size, *seed}, dry: *dry}, packages); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// directories returns packages, as the go command takes them too, in the form of the list of survivors: ./pkg/stamp/... is pkg/stamp.
func directories(packages []string) []string {
	dirs := make([]string, 0, len(packages))
	for _, p := range packages {
		dirs = append(dirs, path.Clean(strings.TrimSuffix(p, "...")))
	}
	return dirs
}

func run(ctx context.Context, list string, u unleasher, packages []string) error {
	accepted, err := readSurvivors(list)
	if err != nil {
		return err
	}
	tool, err := toolchain.Builder{}.Build(ctx, "gremlins")
	if err != nil {
		return err
	}
	u.gremlins = filepath.Join(tool, "gremlins")
	u.tree, err = export(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(u.tree) }()
	var failed error
	for _, dir := range packages {
		found, err := u.unleash(ctx, dir)
		if err != nil {
			return fmt.Errorf("mutate %s: %w", dir, err)
		}
		result := judge(dir, found, accepted)
		fmt.Print(result)
		failed = errors.Join(failed, result.err())
	}
	return failed
}
