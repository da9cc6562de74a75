package check

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// parallel is how many histories run at once, each on a control plane of its own: acts use the same namespaces and the one
// Secret with the digest keys. A history mostly waits until nothing changes any more.
const parallel = "8"

// Other seeds than those of every run: go test ./e2e/simulate/check -args -seed 100 -n 20.
var (
	firstSeed = flag.Uint64("seed", 1, "the first seed of the drawn histories")
	seeds     = flag.Int("n", 3, "how many histories are drawn")
)

// program is the path of the executable.
var program string

func TestMain(m *testing.M) {
	simulate.Prepare()
	var err error
	if program, err = installation.Build(context.Background(), "."); err == nil {
		err = flag.Set("test.parallel", parallel)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestModelAgreesWithTheControlPlane compares the worlds after every step. A step ends when all is at rest.
func TestModelAgreesWithTheControlPlane(t *testing.T) {
	t.Parallel()
	for name, h := range histories(*firstSeed, *seeds) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := &subject{}
			assert.NoError(t, poll.Steadily(t, func() error {
				timed, onPlane := on.run(t, h)
				if different := compare(timed, inModel(t, timed), onPlane); different != "" {
					return errors.New(different)
				}
				return nil
			}, on.askAPI))
		})
	}
}

// subject is what one attempt runs on. Before it has started and after its end, questions are not passed on.
type subject struct {
	plane atomic.Pointer[plane]
	// stop ends what the attempt before ran on; nil before the first one. What the last one ran on ends with the test, which shows
	// the logs.
	stop func() error
}

// askAPI asks whether the API server answers.
func (s *subject) askAPI(ctx context.Context) error {
	p := s.plane.Load()
	if p == nil {
		return nil
	}
	_, err := p.list(ctx, world.Namespaces, "application/json")
	return err
}

// run runs a history for real. It returns the facts before each step and at the end, and the history with the time that each
// step has taken: some of the program's decisions depend on it.
func (s *subject) run(t *testing.T, h history.History) (history.History, []facts) {
	t.Helper()
	if s.stop != nil {
		require.NoError(t, s.stop())
	}
	options, err := withModelsNodes(t.TempDir())
	require.NoError(t, err)
	cp := controlplane.New(t, options)
	components := []string{"recreate-jobs", "run-cronjobs"}
	if slices.Contains(h.Setup.Flags, autoReloadAll) {
		components = append(components, strings.TrimPrefix(autoReloadAll, "--"))
	}
	in := installation.New(t, cp, installation.Options{
		Args: h.Setup.Flags, Replicas: h.Setup.Replicas, KeepRunning: true, Patient: true, LongLease: true, Program: program, Components: components,
	})
	s.stop = func() error { return errors.Join(in.Close(), cp.Stop()) }
	p, err := newPlane(cp.Admin())
	require.NoError(t, err)
	registerOthers(t, cp, h.Setup.OtherWebhooks)
	setUp(t, cp, p)
	s.plane.Store(&p)
	timed, seen := play(t, p, newSite(p, in), h)
	s.plane.Store(nil)
	return timed, seen
}

// play goes through a history.
func play(t *testing.T, p plane, on site, h history.History) (history.History, []facts) {
	t.Helper()
	w := newWatcher()
	h.Steps = slices.Clone(h.Steps)
	all, err := on.rest(t.Context())
	require.NoError(t, err, "at the beginning")
	seen := []facts{w.look(0, nil, all)}
	begun := time.Now()
	for i := range h.Steps {
		h.Steps[i].Wait = history.Duration(time.Since(begun).Round(time.Millisecond))
		begun = time.Now()
		acted := act.Do(t.Context(), p, h.Steps[i])
		all, err := on.rest(t.Context())
		require.NoError(t, err, "after step %d", i+1)
		seen = append(seen, w.look(i+1, acted, all))
	}
	return h, seen
}

// setUp creates what the acts are about, when pods can be created.
func setUp(t *testing.T, cp *controlplane.ControlPlane, p plane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	require.NoError(t, act.SetupNamespaces(ctx, p))
	for _, namespace := range tenants {
		err := poll.Until(ctx, "the service account of "+namespace, lookEvery, func(ctx context.Context) error {
			return cp.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		})
		require.NoError(t, err)
	}
	require.NoError(t, act.Setup(ctx, p))
}

// inModel runs a history in the simulator. What the oracle says of it is not of interest here: pods start although a required
// object is missing, since KWOK starts them.
func inModel(t *testing.T, h history.History) []facts {
	t.Helper()
	w := newWatcher()
	var seen []facts
	simulate.Run(t, h, simulate.Options{
		StartBlocked: true,
		BeforeStep: func(step int, acted error, api simulate.Reader) {
			seen = append(seen, w.look(step, acted, api))
		},
	})
	require.Len(t, seen, len(h.Steps)+1, "the simulation ended early")
	return seen
}

// compare says after which step two worlds differ first, and in what; empty if they do not.
func compare(h history.History, model, onPlane []facts) string {
	for i := range model {
		found := difference(model[i], onPlane[i])
		if found == "" {
			continue
		}
		h.Steps = h.Steps[:i]
		return fmt.Sprintf("the model differs from the control plane after step %d:\n%s\n%s", i, found, h.Words(act.Catalogue()))
	}
	return ""
}
