package reloader_test

import (
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// shared is the installation of the tests that need no flags of Reloader. The refractory gate is off, so that a restart too many shows
// instead of being put off.
var shared *installation.Installation

// Programs with the defaults of all flags wait most of the time, so that more tests run at once than in other suites.
func TestMain(m *testing.M) {
	os.Exit(installation.Main(m, controlplane.Podless(), installation.Options{
		KeepRunning: true, Patient: true, LongLease: true, Parallel: 5, Args: []string{"--refractory=0s", "--settle=300ms"},
	}, func(i *installation.Installation) { shared = i }))
}

// interval is how often a condition is polled.
const interval = 50 * time.Millisecond

// TestBareProgramEverywhere runs one program after the other as Reloader is run by default: each treats the workloads of all namespaces.
func TestBareProgramEverywhere(t *testing.T) {
	t.Parallel()
	w := &where{cp: controlplane.New(t, controlplane.Podless())}
	t.Run("everywhere", w.everywhere)
	t.Run("one strategy after the other", w.strategies)
	t.Run("permissions", w.permissions)
}

// TestBareProgram runs programs as Reloader is run for some namespaces, each beside others on the same control plane.
func TestBareProgram(t *testing.T) {
	t.Parallel()
	installation.InTurn(t, controlplane.Podless(), []installation.Turn{
		{Name: "WhereReloaderLooks", Run: bareProgramWhereReloaderLooks},
		{Name: "InPlaceOfReloader", Run: bareProgramInPlaceOfReloader},
	})
}

// TestFlags is about Reloader's flags in a cluster: its strategies, with the webhook and without, and what its chart renders. What a
// reload writes is what Reloader writes.
func TestFlags(t *testing.T) {
	t.Parallel()
	installation.InTurn(t, controlplane.Podless(), []installation.Turn{
		{Name: "env-vars", Run: func(t *testing.T, cp *controlplane.ControlPlane) { t.Helper(); underStrategy(t, cp, "env-vars") }},
		{Name: "annotations", Run: func(t *testing.T, cp *controlplane.ControlPlane) { t.Helper(); underStrategy(t, cp, "annotations") }},
		{Name: "StrategyInDirectMode", Run: strategyInDirectMode},
		{Name: "Scope", Run: scopeOfReloadersFlags},
	})
}

// create creates a workload out of a manifest, and leaves that as it is.
func create(s *fixture.Fixture, manifest *unstructured.Unstructured) observe.Workload {
	s.Helper()
	s.CreatePromptly(manifest.DeepCopy())
	return observe.Workload{Kind: manifest.GetKind(), Namespace: s.Namespace, Name: manifest.GetName()}
}
