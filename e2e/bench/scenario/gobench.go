package scenario

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// measurements are what Go benchmarks report: for each benchmark, without the word Benchmark before its name, and for
// each unit ("ns/op"), as often as it was run.
type measurements map[string]map[string][]float64

// goBench runs benchmarks of a package of this repository in a process of its own.
func goBench(ctx context.Context, path, pattern, duration string, times int) (measurements, error) {
	root, err := toolchain.Root()
	if err != nil {
		return nil, fmt.Errorf("run the benchmarks of %s: %w", path, err)
	}
	// The flags of package installation, so that what it built need not be built again.
	command := exec.CommandContext(ctx, "go", "test", "-trimpath", "-run", "^$", "-bench", pattern,
		"-benchtime", duration, "-count", strconv.Itoa(times), "./"+path)
	command.Dir = root
	// What checks client-go's caches would be measured, too.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "KUBE_CACHE_MUTATION_DETECTOR=false")
	var said bytes.Buffer // separate, since it would be in the middle of a line
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("run the benchmarks of %s: %w\n%s%s", path, err, output, said.Bytes())
	}
	return parseBench(string(output)), nil
}

// parseBench reads lines such as
//
//	BenchmarkGet/whole_key-2    2396277    543.5 ns/op    40 B/op    3 allocs/op
func parseBench(output string) measurements {
	found := measurements{}
	for line := range strings.Lines(output) {
		name, isBenchmark := strings.CutPrefix(line, "Benchmark")
		fields := strings.Fields(name)
		if !isBenchmark || len(fields) < 4 {
			continue
		}
		name = withoutProcessors(fields[0])
		if found[name] == nil {
			found[name] = map[string][]float64{}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				found[name][fields[i+1]] = append(found[name][fields[i+1]], value)
			}
		}
	}
	return found
}

// withoutProcessors removes the number of processors that go test appends to the name, if there is more than one.
func withoutProcessors(name string) string {
	if dash := strings.LastIndexByte(name, '-'); dash >= 0 {
		if _, err := strconv.Atoi(name[dash+1:]); err == nil {
			return name[:dash]
		}
	}
	return name
}

// require finds the benchmarks that were not run, because they have other names by now.
func (m measurements) require(benchmarks ...string) error {
	for _, name := range benchmarks {
		if len(m[name]) == 0 {
			return fmt.Errorf("go test ran no benchmark %s, but %s", name, strings.Join(slices.Sorted(maps.Keys(m)), ", "))
		}
	}
	return nil
}

// median of what a benchmark reports in a unit.
func (m measurements) median(benchmark, unit string) float64 {
	return median(m[benchmark][unit])
}
