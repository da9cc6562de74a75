package reloader_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// With what Reloader's chart sets for each answer to where it has to look, and with the kinds of others.
func bareProgramWhereReloaderLooks(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	w := &where{cp: cp}
	t.Run("on OpenShift", w.onOpenShift)
	t.Run("in named namespaces", w.named)
	t.Run("at home", w.atHome)
	t.Run("by labels", w.byLabels)
	t.Run("classes", w.classes)
	t.Run("profiles", w.profiles)
}

// where starts programs on a control plane.
type where struct {
	cp      *controlplane.ControlPlane
	started atomic.Int64
}

// aReload is a Deployment whose ConfigMap changes right after both were created.
func aReload(on map[string]string) map[string]meeting {
	return map[string]meeting{"web": {kind: "Deployment", on: on, reloads: true}}
}

var anyChange = map[string]string{fixture.ReloaderAuto: "true"}

// home creates the namespace that a program runs in.
func (w *where) home(t *testing.T, labels ...map[string]string) *bare {
	t.Helper()
	return w.at(t, w.cp.Namespace(t, labels...))
}

func (w *where) at(t *testing.T, namespace string) *bare {
	t.Helper()
	return newBare(t, w.cp, namespace)
}

// run starts the program at home until the test ends, and returns the address of its metrics.
func (w *where) run(home *bare, args ...string) (string, *controlplane.Process) {
	home.Helper()
	return w.runBy(home, w.cp.AdminKubeconfig(), args...)
}

// runBy is run with a kubeconfig, and with the variables that Reloader's chart sets.
func (w *where) runBy(home *bare, kubeconfig string, args ...string) (string, *controlplane.Process) {
	home.Helper()
	name := fmt.Sprintf("where-%d", w.started.Add(1))
	metrics, process := startProgram(home, w.cp, name, []string{"KUBECONFIG=" + kubeconfig, "RELOADER_NAMESPACE=" + home.namespace}, args)
	home.Cleanup(func() { assert.NoError(home, process.Stop(context.WithoutCancel(home.Context()))) })
	return metrics, process
}

// prompt creates a workload and changes its ConfigMap at once.
func (b *bare) prompt(name string, m meeting) {
	b.Helper()
	b.createObjects(name, m)
	require.NoError(b, b.Create(b.Context(), m.manifest(b.namespace, name)))
	configMapTo("2")(b, name)
}

// untouched asserts that prompt had no effect.
func (b *bare) untouched(name string, m meeting, why string) {
	b.Helper()
	assert.Empty(b, b.wrote(m.kind, name), why)
}

func (w *where) everywhere(t *testing.T) {
	home, ignored := w.home(t), w.home(t)
	w.run(home, "--reload-strategy=annotations", "--namespaces-to-ignore="+ignored.namespace, "--ignored-workload-types=cronjobs,jobs")
	home.awaitStart()
	deployment, nightly := meeting{kind: "Deployment", on: anyChange}, meeting{kind: "CronJob", on: anyChange}
	ignored.prompt("web", deployment)
	home.prompt("nightly", nightly)
	home.meet(aReload(anyChange))
	later := w.home(t)
	later.meet(aReload(anyChange))
	ignored.untouched("web", deployment, "its namespace is ignored")
	jobs := &batchv1.JobList{}
	require.NoError(t, home.List(t.Context(), jobs, client.InNamespace(home.namespace)))
	assert.Empty(t, jobs.Items, "CronJobs are ignored")
}

func (w *where) named(t *testing.T) {
	t.Parallel()
	home, one, two := w.home(t), w.home(t), w.home(t)
	w.run(home, "--reload-strategy=annotations", "--namespaces="+one.namespace+","+two.namespace)
	one.awaitStart()
	deployment := meeting{kind: "Deployment", on: anyChange}
	home.prompt("web", deployment)
	one.meet(aReload(anyChange))
	two.meet(aReload(anyChange))
	home.untouched("web", deployment, "its namespace is not named")
}

func (w *where) atHome(t *testing.T) {
	t.Parallel()
	home, other := w.home(t), w.home(t)
	w.run(home, "--reload-strategy=annotations", "--namespaces="+home.namespace, "--auto-reload-all=true")
	home.awaitStart()
	deployment := meeting{kind: "Deployment", on: anyChange}
	other.prompt("web", deployment)
	home.meet(aReload(nil))
	other.untouched("web", deployment, "its namespace is not named")
}

// onOpenShift has DeploymentConfigs, which no argument mentions.
func (w *where) onOpenShift(t *testing.T) {
	t.Parallel()
	fixture.ServeKind(t, w.cp, "DeploymentConfig")
	home := w.home(t)
	w.run(home, "--reload-strategy=annotations", "--namespaces="+home.namespace)
	home.awaitStart()
	home.meet(map[string]meeting{"web": {kind: "DeploymentConfig", on: anyChange, reloads: true}})
}

func (w *where) byLabels(t *testing.T) {
	t.Parallel()
	home, before := w.home(t), w.home(t, map[string]string{"env": "test"})
	w.run(home, "--reload-strategy=annotations", `--namespace-selector="env=test"`)
	before.awaitStart()
	deployment := meeting{kind: "Deployment", on: anyChange}
	home.prompt("web", deployment)
	before.meet(aReload(anyChange))
	w.home(t, map[string]string{"env": "test"}).meet(aReload(anyChange))
	home.untouched("web", deployment, "its namespace has other labels")
}

// strategies changes from one strategy to the other and back.
func (w *where) strategies(t *testing.T) {
	home := w.home(t)
	_, process := w.run(home, "--reload-strategy=annotations")
	home.awaitStart()
	home.meet(aReload(anyChange))
	require.NoError(t, process.Stop(t.Context()))
	assert.Contains(t, home.wrote("Deployment", "web"), fixture.ReloadedFrom)
	for n, strategy := range []string{"env-vars", "annotations"} {
		_, process = w.run(home, "--reload-strategy="+strategy)
		home.reloadsBy(strategy, "last", strategy)
		home.changes("Deployment", "web", n+1, n+1) // the other strategy restarts nothing by itself
		home.reloadsBy(strategy, "web", strategy)
		if n == 0 {
			require.NoError(t, process.Stop(t.Context()))
		}
	}
	home.reloadsBy("annotations", "last", "in the end")
	home.changes("Deployment", "web", 3, 3)
}

// reloadsBy changes the ConfigMap of a Deployment, and awaits what a strategy writes.
func (b *bare) reloadsBy(strategy, name, content string) {
	b.Helper()
	writes := map[string]string{"annotations": fixture.ReloadedFrom, "env-vars": "STAKATER_" + strings.ToUpper(name) + "_CONFIGMAP"}[strategy]
	before := b.wrote("Deployment", name)[writes]
	configMapTo(content)(b, name)
	b.await("another "+writes+" of "+name, func() error {
		if now := b.wrote("Deployment", name); now[writes] == "" || now[writes] == before {
			return fmt.Errorf("there is no new one: %v", now)
		}
		return nil
	})
}
