package kind_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

var secretsStore = schema.GroupVersion{Group: "secrets-store.csi.x-k8s.io", Version: "v1"}

// defineSecretsStore defines the kinds of the Secrets Store CSI driver, as its installation does, after pod-reloader's.
func defineSecretsStore(ctx context.Context, cp *controlplane.ControlPlane) error {
	_, err := cp.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join("testdata", "secrets-store.yaml"))
	if err != nil {
		return err
	}
	const group = ".secrets-store.csi.x-k8s.io"
	return cp.AwaitServed(ctx, "secretproviderclasses"+group, "secretproviderclasspodstatuses"+group)
}

// driver writes statuses as the Secrets Store CSI driver does.
type driver struct {
	*fixture.Fixture
	// probe mounts a class of its own. It is reloaded after all that was written before was seen.
	probe  observe.Workload
	probes int
}

func newDriver(t *testing.T) *driver {
	t.Helper()
	d := &driver{Fixture: fixture.New(t, shared)}
	d.probe = d.mounting("probe", "probe", map[string]string{auto: "true"})
	d.mount("probe-0", "probe", 0)
	d.AwaitAdopted(d.probe, "secretproviderclass/probe")
	return d
}

// mounting creates a Deployment that mounts a class.
func (d *driver) mounting(name, class string, annotations map[string]string) observe.Workload {
	d.Helper()
	return d.mountingAll(name, annotations, class)
}

// mountingAll creates a Deployment with a volume for each class.
func (d *driver) mountingAll(name string, annotations map[string]string, classes ...string) observe.Workload {
	d.Helper()
	manifest := d.Manifest("Deployment", name, fixture.Uses{Annotations: annotations})
	var volumes []any
	for _, class := range classes {
		volumes = append(volumes, map[string]any{"name": class, "csi": map[string]any{
			"driver": "secrets-store.csi.k8s.io", "readOnly": true, "volumeAttributes": map[string]any{"secretProviderClass": class},
		}})
	}
	require.NoError(d, unstructured.SetNestedSlice(manifest.Object, volumes, "spec", "template", "spec", "volumes"))
	d.CreatePromptly(manifest)
	return observe.Workload{Kind: "Deployment", Namespace: d.Namespace, Name: name}
}

// class creates a SecretProviderClass.
func (d *driver) class(name string, annotations map[string]string) {
	d.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"provider": "vault"}}}
	object.SetGroupVersionKind(secretsStore.WithKind("SecretProviderClass"))
	object.SetNamespace(d.Namespace)
	object.SetName(name)
	object.SetAnnotations(annotations)
	require.NoError(d, d.Create(d.Context(), object))
}

func (d *driver) status(pod, class string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(secretsStore.WithKind("SecretProviderClassPodStatus"))
	object.SetNamespace(d.Namespace)
	object.SetName(strings.Join([]string{pod, d.Namespace, class}, "-"))
	return object
}

func objects(version int) []any {
	return []any{map[string]any{"id": "secret/password", "version": strconv.Itoa(version)}, map[string]any{"id": "secret/user", "version": "1"}}
}

// mount makes the status of a pod.
func (d *driver) mount(pod, class string, version int) {
	d.Helper()
	object := d.status(pod, class)
	object.Object["status"] = map[string]any{
		"podName": pod, "mounted": true, "secretProviderClassName": class, "targetPath": "/var/lib/kubelet/pods/" + pod, "objects": objects(version),
	}
	require.NoError(d, d.Create(d.Context(), object))
	require.Equal(d, int64(1), object.GetGeneration())
}

// rotate changes the status of a pod.
func (d *driver) rotate(pod, class string, version int) {
	d.Helper()
	object := d.status(pod, class)
	require.NoError(d, d.Client.Get(d.Context(), client.ObjectKeyFromObject(object), object))
	require.NoError(d, unstructured.SetNestedSlice(object.Object, objects(version), "status", "objects"))
	require.NoError(d, d.Update(d.Context(), object))
	require.Greater(d, object.GetGeneration(), int64(1), "the status has no subresource")
}

// end deletes the status of a pod, as the garbage collector does.
func (d *driver) end(pod, class string) {
	d.Helper()
	require.NoError(d, d.Delete(d.Context(), d.status(pod, class)))
}

// seen waits until all that was written before has had its effect.
func (d *driver) seen() {
	d.Helper()
	d.probes++
	d.rotate("probe-0", "probe", d.probes)
	d.AwaitChanges(d.probe, d.probes, "the statuses of another class come by the same watch, in their order")
	d.Settled()
}

func TestSecretProviderClassReloadsOncePerVersion(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.class("vault", nil)
	w := d.mounting("web", "vault", map[string]string{auto: "true"})
	for pod := range 3 {
		d.mount(fmt.Sprint("web-", pod), "vault", 1)
	}
	d.AwaitAdopted(w, "secretproviderclass/vault")
	d.mount("web-3", "vault", 2)
	d.seen()
	d.RequireChanges(w, 0, "first pods, and one that has mounted a newer version")

	d.rotate("web-0", "vault", 2)
	d.AwaitChanges(w, 1, "a pod has other versions than it was started with")
	d.AwaitEvent(w, "Reloaded", "secretproviderclass/vault modified")
	d.end("web-0", "vault")
	d.seen()
	d.RequireChanges(w, 1, "the pods that are left have the version from before")
	d.Merge(&appsv1.Deployment{}, "web", `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	d.AwaitChanges(w, 2, "a release")
	d.rotate("web-1", "vault", 2)
	d.mount("web-4", "vault", 2)
	for _, pod := range []string{"web-1", "web-2", "web-3"} {
		d.end(pod, "vault")
	}
	d.seen()
	d.RequireChanges(w, 2, "the statuses are replaced with their pods")

	d.rotate("web-4", "vault", 3)
	d.AwaitChanges(w, 3, "the next version")
	d.end("web-4", "vault")
	d.seen()
	d.mount("web-5", "vault", 3)
	d.seen()
	d.RequireChanges(w, 3, "no pod is left for a while")
}

func TestSecretProviderClassesThatTriggerNothing(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	d.class("vault", map[string]string{"team": "shop"})
	d.class("ignored", map[string]string{"reloader.stakater.com/ignore": "true"})
	named := d.mounting("named", "vault", map[string]string{"secretproviderclass.reloader.stakater.com/reload": "va.*"})
	excluded := d.mounting("excluded", "vault", map[string]string{
		auto: "true", "secretproviderclasses.exclude.reloader.stakater.com/reload": "vault",
	})
	ignored := d.mounting("ignored", "ignored", map[string]string{auto: "true"})
	unasked := d.mounting("unasked", "vault", map[string]string{"configmap.reloader.stakater.com/auto": "true"})
	for _, class := range []string{"vault", "ignored"} {
		d.mount("web-0", class, 1)
	}
	d.AwaitAdopted(named, "secretproviderclass/vault")
	for _, class := range []string{"ignored", "vault"} {
		d.rotate("web-0", class, 2)
	}
	d.AwaitChanges(named, 1, "the expression matches")
	d.seen()
	d.RequireChanges(named, 1, "one rotation")
	for _, w := range []observe.Workload{excluded, ignored, unasked} {
		d.RequireChanges(w, 0, "it does not track the class")
	}
}

// Of two volumes of one pod, the rotation of the excluded class restarts nothing, and that of the other one restarts the workload once.
func TestExcludedClassBesideAnotherVolume(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	exclude := func(class string) map[string]string {
		return map[string]string{auto: "true", "secretproviderclasses.exclude.reloader.stakater.com/reload": class}
	}
	classes := []string{"vault", "db"}
	workloads := map[string]observe.Workload{"vault": d.mountingAll("first", exclude("vault"), classes...), "db": d.mountingAll("second", exclude("db"), classes...)}
	for _, class := range classes {
		d.class(class, nil)
		for _, w := range workloads {
			d.mount(w.Name+"-0", class, 1)
		}
	}
	d.AwaitAdopted(workloads["vault"], "secretproviderclass/db")
	d.AwaitAdopted(workloads["db"], "secretproviderclass/vault")

	d.rotate("first-0", "vault", 2)
	d.rotate("second-0", "vault", 2)
	d.AwaitChanges(workloads["db"], 1, "its class is rotated")
	d.seen()
	d.RequireChanges(workloads["db"], 1, "one rotation")
	d.RequireChanges(workloads["vault"], 0, "the class is excluded")
	d.rotate("first-0", "db", 2)
	d.AwaitChanges(workloads["vault"], 1, "the other class is not excluded")
	d.seen()
	d.RequireChanges(workloads["vault"], 1, "one rotation")
	d.RequireChanges(workloads["db"], 1, "the class is excluded")
	for class, w := range workloads {
		assert.NotContains(t, d.Get(w).GetAnnotations()[fixture.ConfigRecord], "secretproviderclass/"+class, "an excluded class is not recorded")
	}
}

// A rotation while no replica runs is found by the one that starts. No other test runs while they are killed.
func TestRotationDuringDowntimeReloads(t *testing.T) {
	d := newDriver(t)
	w := d.mounting("web", "vault", map[string]string{auto: "true"})
	d.mount("web-0", "vault", 1)
	d.mount("web-1", "vault", 1)
	d.AwaitAdopted(w, "secretproviderclass/vault")
	for _, replica := range shared.Replicas() {
		replica.Kill()
	}
	d.rotate("web-0", "vault", 2)
	d.AwaitChanges(w, 1, "the Record is on the workload")
	for _, replica := range shared.Replicas() {
		replica.Kill()
	}
	d.end("web-0", "vault")
	d.seen()
	d.RequireChanges(w, 1, "what is left is older than the Record")
	assert.Empty(t, d.Get(w).GetAnnotations()["pod-reloader.cs.sap.com/config-hash"], "no request is left")
}

// Without the driver's kinds, a class has no content, and the other objects of a workload reload it. No other test runs meanwhile.
func TestWorkloadIsReloadedAfterTheDriverWasRemoved(t *testing.T) {
	d := newDriver(t)
	d.ConfigMap("app", fixture.Data{"key": "1"})
	w := d.mounting("web", "vault", map[string]string{auto: "true", fixture.ConfigMaps: "app"})
	d.mount("web-0", "vault", 1)
	d.AwaitAdopted(w, "secretproviderclass/vault")
	cp := shared.ControlPlane()
	t.Cleanup(func() { assert.NoError(t, defineSecretsStore(context.WithoutCancel(t.Context()), cp)) })
	_, err := cp.Kubectl(d.Patiently(), "delete", "-f", filepath.Join("testdata", "secrets-store.yaml"))
	require.NoError(t, err)
	d.SetConfigMap("app", "key", "2")
	d.AwaitChanges(w, 1, "the webhook stamps it")
	d.AwaitEvent(w, "Reloaded", "configmap/app modified")

	require.NoError(t, defineSecretsStore(d.Patiently(), cp))
	d.mount("web-1", "vault", 2)
	d.AwaitAdopted(w, "secretproviderclass/vault")
	d.rotate("web-1", "vault", 3)
	d.AwaitChanges(w, 2, "the driver is back")
}
