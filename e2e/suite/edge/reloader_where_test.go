package edge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// With what Reloader's chart sets for each answer to where it has to look, and with the kinds of others. A program that
// looks everywhere would also treat what the others are tested with, so that they run one after the other.
func bareProgramWhereReloaderLooks(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	w := &where{cp: cp}
	t.Run("everywhere", w.everywhere)
	t.Run("on OpenShift", w.onOpenShift)
	t.Run("in named namespaces", w.named)
	t.Run("at home", w.atHome)
	t.Run("by labels", w.byLabels)
	t.Run("one strategy after the other", w.strategies)
	t.Run("classes", w.classes)
	t.Run("profiles", w.profiles)
	t.Run("permissions", w.permissions)
}

// where starts one program after the other on a control plane.
type where struct {
	cp      *controlplane.ControlPlane
	started int
}

// aReload is a Deployment whose ConfigMap changes right after both were created.
func aReload(on map[string]string) map[string]meeting {
	return map[string]meeting{"web": {kind: "Deployment", on: on, reloads: true}}
}

var anyChange = map[string]string{reloaderAuto: "true"}

// home creates the namespace that a program runs in.
func (w *where) home(t *testing.T, labels ...map[string]string) *bare {
	t.Helper()
	return w.at(t, w.cp.Namespace(t, labels...))
}

func (w *where) at(t *testing.T, namespace string) *bare {
	t.Helper()
	return newBare(t, w.cp, namespace)
}

func (w *where) address(t *testing.T) string {
	t.Helper()
	port, err := w.cp.FreePort()
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// run starts the program at home until the test ends, and returns the address of its metrics.
func (w *where) run(home *bare, args ...string) (string, *controlplane.Process) {
	home.Helper()
	return w.runBy(home, w.cp.AdminKubeconfig(), args...)
}

// runBy is run with a kubeconfig, and with the variables that Reloader's chart sets.
func (w *where) runBy(home *bare, kubeconfig string, args ...string) (string, *controlplane.Process) {
	home.Helper()
	t := home.TB.(*testing.T)
	program, err := installation.Build(t.Context(), ".")
	require.NoError(t, err)
	metrics := w.address(t)
	w.started++
	process, err := w.cp.StartProcess(t.Context(), controlplane.Program{
		Name: fmt.Sprintf("where-%d", w.started), Path: program,
		Args: append(slices.Clone(args),
			"--metrics-bind-address="+metrics, "--health-probe-bind-address="+w.address(t), "--webhook-bind-address="+w.address(t)),
		Env:   []string{"KUBECONFIG=" + kubeconfig, "RELOADER_NAMESPACE=" + home.namespace, "RELOADER_DEPLOYMENT_NAME=reloader-reloader"},
		Ready: controlplane.URLReady("http://" + metrics + "/live"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, process.Stop(context.WithoutCancel(t.Context()))) })
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
	define(t, w.cp, "DeploymentConfig")
	home := w.home(t)
	w.run(home, "--reload-strategy=annotations", "--namespaces="+home.namespace)
	home.awaitStart()
	home.meet(map[string]meeting{"web": {kind: "DeploymentConfig", on: anyChange, reloads: true}})
}

func (w *where) byLabels(t *testing.T) {
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
	assert.Contains(t, home.wrote("Deployment", "web"), reloaderWrote)
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
	writes := map[string]string{"annotations": reloaderWrote, "env-vars": "STAKATER_" + strings.ToUpper(name) + "_CONFIGMAP"}[strategy]
	before := b.wrote("Deployment", name)[writes]
	configMapTo(content)(b, name)
	b.await("another "+writes+" of "+name, func() error {
		if now := b.wrote("Deployment", name); now[writes] == "" || now[writes] == before {
			return fmt.Errorf("there is no new one: %v", now)
		}
		return nil
	})
}

// classes has the statuses of classes as the driver writes them: the first one is there before the workload.
func (w *where) classes(t *testing.T) {
	define := []string{"-f", filepath.Join("..", "kind", "testdata", "secrets-store.yaml")}
	_, err := w.cp.Kubectl(t.Context(), append([]string{"apply", "--server-side"}, define...)...)
	require.NoError(t, err)
	_, err = w.cp.Kubectl(t.Context(), append([]string{"wait", "--for=condition=Established", "--timeout=60s"}, define...)...)
	require.NoError(t, err)
	home := w.home(t)
	_, process := w.run(home, "--reload-strategy=annotations", "--enable-csi-integration=true", "--namespaces="+home.namespace)
	home.awaitStart()
	const domain = "secretproviderclass.reloader.stakater.com/"
	of := map[string]meeting{
		"listed": {kind: "Deployment", on: map[string]string{domain + "reload": "listed"}}, "typed": {kind: "Deployment", on: map[string]string{domain + "auto": "true"}},
		"any": {kind: "Deployment", on: anyChange}, "other": {kind: "Deployment", on: map[string]string{"configmap.reloader.stakater.com/auto": "true"}},
	}
	for name, m := range of {
		m.pod = byClass
		home.createObjects(name, m)
		home.rotated(name, "pod-1", "1")
		require.NoError(t, home.Create(t.Context(), m.manifest(home.namespace, name)))
		home.rotated(name, "pod-1", "2")
	}
	delete(of, "other")
	awaitOther := func(before map[string]map[string]string) {
		for name := range of {
			home.await("the reload of "+name, func() error {
				if now := home.wrote("Deployment", name); len(now) == 0 || maps.Equal(now, before[name]) {
					return errors.New("it is not reloaded")
				}
				return nil
			})
		}
	}
	awaitOther(nil)
	before := map[string]map[string]string{}
	for name := range of {
		before[name] = home.wrote("Deployment", name)
		// The pods are replaced, and the content changes once more.
		home.rotated(name, "pod-2", "2")
		require.NoError(t, home.Delete(t.Context(), statusOf(home.namespace, name, "pod-1")))
		home.rotated(name, "pod-2", "3")
	}
	awaitOther(before)
	home.untouched("other", meeting{kind: "Deployment"}, "only ConfigMaps concern it")
	for name := range of {
		var source struct{ Type, Name, Namespace, Hash string }
		text := home.wrote("Deployment", name)[reloaderWrote]
		require.NoError(t, json.Unmarshal([]byte(text), &source), text)
		assert.Equal(t, []string{"SECRETPROVIDERCLASS", name, home.namespace}, []string{source.Type, source.Name, source.Namespace})
		assert.Equal(t, classHash(name, "3"), source.Hash, "as Reloader computes it")
	}
	require.NoError(t, process.Stop(t.Context()))
	w.classVariables(home, slices.Sorted(maps.Keys(of)))
}

// classVariables changes to the other strategy, and rotates once more.
func (w *where) classVariables(home *bare, names []string) {
	home.Helper()
	w.run(home, "--reload-strategy=env-vars", "--enable-csi-integration=true", "--namespaces="+home.namespace)
	for _, name := range names {
		home.rotated(name, "pod-2", "4")
	}
	for _, name := range names {
		home.await("the variable of "+name, func() error {
			variable := "STAKATER_" + strings.ToUpper(name) + "_SECRETPROVIDERCLASS"
			if now, want := home.wrote("Deployment", name)[variable], classHash(name, "4"); now != want {
				return fmt.Errorf("%s is %q, and Reloader sets %q", variable, now, want)
			}
			return nil
		})
	}
}

// classHash is what Reloader computes of a class whose password has a version.
func classHash(name, version string) string {
	return sha1Of("SecretProviderClassName=" + name + ";secret/password=" + version)
}

// byClass mounts the class of the workload's name.
func byClass(name string) (container, spec map[string]any) {
	return map[string]any{"volumeMounts": []any{map[string]any{"name": "secrets", "mountPath": "/mnt/secrets"}}},
		map[string]any{"volumes": []any{map[string]any{"name": "secrets", "csi": map[string]any{
			"driver": "secrets-store.csi.k8s.io", "readOnly": true, "volumeAttributes": map[string]any{"secretProviderClass": name},
		}}}}
}

func statusOf(namespace, class, pod string) *unstructured.Unstructured {
	status := &unstructured.Unstructured{Object: map[string]any{}}
	status.SetGroupVersionKind(schema.GroupVersionKind{Group: "secrets-store.csi.x-k8s.io", Version: "v1", Kind: "SecretProviderClassPodStatus"})
	status.SetNamespace(namespace)
	status.SetName(strings.Join([]string{pod, namespace, class}, "-"))
	return status
}

// rotated creates the status of a pod, or gives it other versions.
func (b *bare) rotated(class, pod, version string) {
	b.Helper()
	status := statusOf(b.namespace, class, pod)
	found := b.Get(b.Context(), client.ObjectKeyFromObject(status), status)
	status.Object["status"] = map[string]any{
		"podName": pod, "mounted": true, "secretProviderClassName": class, "targetPath": "/var/lib/kubelet/pods/" + pod,
		"objects": []any{map[string]any{"id": "secret/password", "version": version}},
	}
	if found == nil {
		require.NoError(b, b.Update(b.Context(), status))
		return
	}
	require.NoError(b, client.IgnoreNotFound(found))
	require.NoError(b, b.Create(b.Context(), status))
}

// profiles asks both ports for profiles. The port of the metrics is open to more than those who may see them.
func (w *where) profiles(t *testing.T) {
	home := w.home(t)
	profiles := w.address(t)
	metrics, process := w.run(home, "--namespaces="+home.namespace, "--pprof-addr="+profiles)
	assert.Equal(t, http.StatusNotFound, statusCode(t, metrics, "/debug/pprof/"))
	_, err := answerOf(t, profiles, "/debug/pprof/")
	require.Error(t, err, "no flag has asked for profiles")
	require.NoError(t, process.Stop(t.Context()))

	metrics, _ = w.run(home, "--namespaces="+home.namespace, "--enable-pprof", "--pprof-addr="+profiles)
	assert.Equal(t, http.StatusOK, statusCode(t, profiles, "/debug/pprof/goroutine?debug=1"))
	assert.Equal(t, http.StatusNotFound, statusCode(t, metrics, "/debug/pprof/"))
	for _, path := range []string{"/live", "/metrics", "/healthz"} {
		assert.Equal(t, http.StatusOK, statusCode(t, metrics, path))
	}
}

// answerOf returns the status of an answer, or why there is none.
func answerOf(t *testing.T, address, path string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func statusCode(t *testing.T, address, path string) int {
	t.Helper()
	code, err := answerOf(t, address, path)
	require.NoError(t, err)
	return code
}
