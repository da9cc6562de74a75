package reloader_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// classes has the statuses of classes as the driver writes them: the first one is there before the workload.
func (w *where) classes(t *testing.T) {
	t.Parallel()
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
		text := home.wrote("Deployment", name)[fixture.ReloadedFrom]
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
