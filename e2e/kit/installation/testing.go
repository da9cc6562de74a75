package installation

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// startTimeout bounds an installation, the build of the program included.
const startTimeout = 20 * time.Minute

// New installs pod-reloader for one test, which fails if that fails, and stops it with the test.
func New(t testing.TB, cp *controlplane.ControlPlane, options Options) *Installation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	i, err := Start(ctx, cp, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.Explain(t, "")
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// parallel is how many tests of a suite run at once unless the command line says otherwise, which is read later. They
// spend much of their time waiting for gates, so that the number of processors, the usual default, is not what limits them.
// With more, suites at once, of which make test-oldest runs three, make writes so slow on two processors that tests which need
// prompt ones show nothing. The suites promise and reloader wait longer than the others, and set a higher number in their Options.
const parallel = 3

// Main is for TestMain: it starts a control plane with an installation that the tests of a package share, hands it over,
// runs the tests and stops everything. The result is the exit code.
func Main(m *testing.M, on controlplane.Options, options Options, use func(*Installation)) int {
	if err := flag.Set("test.parallel", strconv.Itoa(cmp.Or(options.Parallel, parallel))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	tests := &kept{M: m}
	return controlplane.Main(tests, on, func(cp *controlplane.ControlPlane) {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		i, err := Start(ctx, cp, options)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			_ = cp.Stop()
			os.Exit(1)
		}
		tests.installation = i
		use(i)
	})
}

// kept are tests on an installation that may keep its replicas running: it ends before the control plane kills them.
type kept struct {
	*testing.M
	installation *Installation
}

// Run runs the tests. They fail as a whole where a replica has ended by itself, but for a lost lease.
func (k *kept) Run() int {
	code := k.M.Run()
	if err := k.installation.stopKeeping(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: a replica of the shared installation ended:", err)
		return max(code, 1)
	}
	return code
}

// logTail is how much of a replica's log a failing test shows.
const logTail = 8 << 10

// Explain shows, when a test has failed, the end of what the replicas have logged about something, like a namespace; ""
// means everything.
func (i *Installation) Explain(t testing.TB, about string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, r := range i.Replicas() {
		log, err := r.Log()
		if err != nil {
			t.Log(err)
			continue
		}
		var lines []string
		for line := range strings.Lines(log) {
			if strings.Contains(line, about) {
				lines = append(lines, line)
			}
		}
		log = strings.Join(lines, "")
		t.Logf("the end of the log of %s about %q:\n%s", r.Name(), about, log[max(0, len(log)-logTail):])
	}
}
