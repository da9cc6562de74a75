package edge_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// Reloader's annotations, as its documentation names them.
const (
	reloaderAuto       = "reloader.stakater.com/auto"
	reloaderConfigMaps = "configmap.reloader.stakater.com/reload"
	reloaderSecrets    = "secret.reloader.stakater.com/reload"
	reloaderWrote      = "reloader.stakater.com/last-reloaded-from"
)

// bare is the program as Reloader is started outside of a cluster: with its flags and variables, and a kubeconfig. It handles one
// namespace, which is its own, and no webhook is registered. All other settings have their defaults.
type bare struct {
	testing.TB
	client.Client
	namespace string
	watcher   *observe.Watcher
}

func newBare(t *testing.T, cp *controlplane.ControlPlane, namespace string) *bare {
	t.Helper()
	return &bare{TB: t, Client: cp.Client(), namespace: namespace, watcher: observe.New(t, cp.Admin(), namespace)}
}

func startBare(t *testing.T, cp *controlplane.ControlPlane, args ...string) *bare {
	t.Helper()
	program, err := installation.Build(t.Context(), ".")
	require.NoError(t, err)
	b := newBare(t, cp, cp.Namespace(t))
	address := func() string {
		port, err := cp.FreePort()
		require.NoError(t, err)
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	metrics := address()
	args = append(slices.Clone(args), "--metrics-bind-address="+metrics, "--health-probe-bind-address="+address(), "--webhook-bind-address="+address())
	_, err = cp.StartProcess(t.Context(), controlplane.Program{
		Name: "bare-" + b.namespace, Path: program, Args: args,
		Env: []string{
			"KUBECONFIG=" + cp.AdminKubeconfig(), "KUBERNETES_NAMESPACE=" + b.namespace, "RELOADER_DEPLOYMENT_NAME=reloader-reloader",
		},
		Ready: controlplane.URLReady("http://" + metrics + "/live"),
	})
	require.NoError(t, err)
	b.awaitStart()
	return b
}

// awaitStart waits until the program treats what is created. It starts from what it finds of workloads that are older than itself,
// which is known to the second.
func (b *bare) awaitStart() {
	b.Helper()
	first := meeting{kind: "Deployment", on: map[string]string{reloaderAuto: "true"}, labels: map[string]string{"reload": "true"}}
	b.createObjects("first", first)
	require.NoError(b, b.Create(b.Context(), first.manifest(b.namespace, "first")))
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kindOf(first.kind))
	b.await("the start", func() error {
		require.NoError(b, b.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: "first"}, o))
		if o.GetAnnotations()[fixture.ConfigRecord] == "" {
			return errors.New("nothing is recorded")
		}
		if time.Since(o.GetCreationTimestamp().Time) < 2*time.Second {
			return errors.New("a second has not passed")
		}
		return nil
	})
}

// await waits as other tests do: how long a reload takes is not tested, on a machine that may be overloaded.
func (b *bare) await(what string, holds func() error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), fixture.Patience)
	defer cancel()
	require.NoError(b, poll.Until(ctx, what, interval, func(context.Context) error { return holds() }))
}

// meeting is a workload of one kind with a ConfigMap and a Secret of its own name.
type meeting struct {
	kind string
	// on are annotations of the workload, onPods those of its pod template, of those of the objects, labels the objects' labels.
	on, onPods, of, labels map[string]string
	// pod returns what the first container and the pod spec have besides; nil reads both objects by envFrom.
	pod func(name string) (container, spec map[string]any)
	// after creates the objects after the workload; otherwise act changes them, by default the ConfigMap.
	after bool
	act   func(b *bare, name string)
	// reloads says whether that reloads the workload.
	reloads bool
}

func byEnvFrom(name string) (container, spec map[string]any) {
	return map[string]any{"envFrom": []any{
		map[string]any{"configMapRef": map[string]any{"name": name}}, map[string]any{"secretRef": map[string]any{"name": name}},
	}}, nil
}

func byKeys(name string) (container, spec map[string]any) {
	ref := map[string]any{"name": name, "key": "key"}
	return map[string]any{"env": []any{
		map[string]any{"name": "A", "valueFrom": map[string]any{"configMapKeyRef": ref}},
		map[string]any{"name": "B", "valueFrom": map[string]any{"secretKeyRef": ref}},
	}}, nil
}

func byProjection(name string) (container, spec map[string]any) {
	source := map[string]any{"name": name}
	return map[string]any{"volumeMounts": []any{map[string]any{"name": "all", "mountPath": "/etc/all"}}},
		map[string]any{"volumes": []any{map[string]any{"name": "all", "projected": map[string]any{"sources": []any{
			map[string]any{"configMap": source}, map[string]any{"secret": source},
		}}}}}
}

func byInitContainer(name string) (container, spec map[string]any) {
	first, _ := byEnvFrom(name)
	first["name"], first["image"] = "init", "busybox:1.36"
	return nil, map[string]any{"initContainers": []any{first}}
}

func byInitVolume(name string) (container, spec map[string]any) {
	mounts := []any{map[string]any{"name": "config", "mountPath": "/config"}, map[string]any{"name": "secrets", "mountPath": "/secrets"}}
	return nil, map[string]any{
		"initContainers": []any{map[string]any{"name": "init", "image": "busybox:1.36", "volumeMounts": mounts}},
		"volumes": []any{
			map[string]any{"name": "config", "configMap": map[string]any{"name": name}},
			map[string]any{"name": "secrets", "secret": map[string]any{"secretName": name}},
		},
	}
}

func notAtAll(string) (container, spec map[string]any) { return nil, nil }

func (m meeting) manifest(namespace, name string) *unstructured.Unstructured {
	if m.pod == nil {
		m.pod = byEnvFrom
	}
	container, spec := m.pod(name)
	main := map[string]any{"name": "app", "image": "busybox:1.36"}
	maps.Copy(main, container)
	pods := map[string]any{"containers": []any{main}}
	maps.Copy(pods, spec)
	annotations := map[string]any{}
	for key, value := range m.onPods {
		annotations[key] = value
	}
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": name}, "annotations": annotations}, "spec": pods}
	o := &unstructured.Unstructured{}
	selector := map[string]any{"matchLabels": map[string]any{"app": name}}
	switch m.kind {
	case "CronJob":
		pods["restartPolicy"] = "OnFailure"
		o.Object = map[string]any{"spec": map[string]any{"schedule": "0 0 1 1 *", "jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}}
	case "Job":
		pods["restartPolicy"] = "Never"
		o.Object = map[string]any{"spec": map[string]any{"template": template}}
	case "DeploymentConfig":
		o.Object = map[string]any{"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"app": name}, "template": template}}
	default:
		o.Object = map[string]any{"spec": map[string]any{"selector": selector, "template": template}}
	}
	o.SetGroupVersionKind(kindOf(m.kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetAnnotations(m.on)
	return o
}

func kindOf(kind string) schema.GroupVersionKind {
	switch kind {
	case "DeploymentConfig":
		return schema.GroupVersionKind{Group: "apps.openshift.io", Version: "v1", Kind: kind}
	case "Rollout":
		return schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: kind}
	default:
		return observe.KindNamed(kind).GroupVersionKind()
	}
}

func (b *bare) createObjects(name string, m meeting) {
	b.Helper()
	meta := metav1.ObjectMeta{Namespace: b.namespace, Name: name, Annotations: m.of, Labels: m.labels}
	require.NoError(b, b.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": "1"}}))
	require.NoError(b, b.Create(b.Context(), &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"key": "1"}}))
}

func (b *bare) merge(object client.Object, name, patch string) {
	b.Helper()
	object.SetNamespace(b.namespace)
	object.SetName(name)
	require.NoError(b, b.Patch(b.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func configMapTo(value string) func(*bare, string) {
	return func(b *bare, name string) { b.merge(&corev1.ConfigMap{}, name, `{"data":{"key":"`+value+`"}}`) }
}

func secretTo(value string) func(*bare, string) {
	return func(b *bare, name string) { b.merge(&corev1.Secret{}, name, `{"stringData":{"key":"`+value+`"}}`) }
}

func labelsOnly(b *bare, name string) {
	b.merge(&corev1.ConfigMap{}, name, `{"metadata":{"labels":{"new":"label"},"annotations":{"new":"annotation"}}}`)
	b.merge(&corev1.Secret{}, name, `{"metadata":{"labels":{"new":"label"}}}`)
}

func deletion(b *bare, name string) {
	require.NoError(b, b.Delete(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}))
}

// wrote returns what Reloader's strategies have written on the pod template of a workload, by which its users recognize a reload.
func (b *bare) wrote(kind, name string) map[string]string {
	b.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kindOf(kind))
	require.NoError(b, b.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, o))
	found := map[string]string{}
	if from, ok := fixture.TemplateAnnotations(o)[reloaderWrote]; ok {
		found[reloaderWrote] = from
	}
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		variables, _ := container.(map[string]any)["env"].([]any)
		for _, variable := range variables {
			fields := variable.(map[string]any)
			if name := fields["name"].(string); strings.HasPrefix(name, "STAKATER_") {
				found[name], _ = fields["value"].(string)
			}
		}
	}
	return found
}

// meet creates everything, waits until all is known, does everything, and looks at what was reloaded.
func (b *bare) meet(all map[string]meeting) {
	b.Helper()
	for name, m := range all {
		if !m.after {
			b.createObjects(name, m)
		}
		require.NoError(b, b.Create(b.Context(), m.manifest(b.namespace, name)))
	}
	for name, m := range all {
		switch {
		case m.after:
			b.createObjects(name, m)
		case m.act != nil:
			m.act(b, name)
		default:
			configMapTo("2")(b, name)
		}
	}
	b.awaitReloads(all)
	// Whatever was done about the rest is done when what comes later is.
	last := map[string]meeting{"last": {kind: "Deployment", on: map[string]string{reloaderConfigMaps: "last"}, labels: map[string]string{"reload": "true"}, reloads: true}}
	b.createObjects("last", last["last"])
	require.NoError(b, b.Create(b.Context(), last["last"].manifest(b.namespace, "last")))
	configMapTo("2")(b, "last")
	b.awaitReloads(last)
	for name, m := range all {
		switch {
		case !m.reloads:
			assert.Empty(b, b.wrote(m.kind, name), "%s is not reloaded", name)
			b.changes(m.kind, name, 0, 0)
		case m.after:
			b.changes(m.kind, name, 1, 2) // the creations of its two objects may be reloads of their own
		default:
			b.changes(m.kind, name, 1, 1)
		}
	}
}

// changes asserts how many changes of its pod template a workload has had, of a kind that is observed.
func (b *bare) changes(kind, name string, least, most int) {
	b.Helper()
	if !slices.ContainsFunc(observe.Builtin(), func(k observe.Kind) bool { return k.Name == kind }) {
		return
	}
	ctx, cancel := context.WithTimeout(b.Context(), fixture.Patience)
	defer cancel()
	require.NoError(b, b.watcher.Sync(ctx))
	w := observe.Workload{Kind: kind, Namespace: b.namespace, Name: name}
	assert.Positive(b, b.watcher.Versions(w), "%s is observed", w)
	changes := b.watcher.Changes(w)
	assert.True(b, least <= len(changes) && len(changes) <= most, "%s has had %d changes: %v", w, len(changes), changes)
}

func (b *bare) awaitReloads(all map[string]meeting) {
	b.Helper()
	for name, m := range all {
		b.await("the reload of "+m.kind+" "+name, func() error {
			if m.reloads && len(b.wrote(m.kind, name)) == 0 {
				return errors.New("it is not reloaded")
			}
			return nil
		})
	}
}

// each returns meetings for each of the kinds, with names that begin with it.
func each(all map[string]meeting) map[string]meeting {
	every := map[string]meeting{}
	for _, kind := range []string{"Deployment", "DaemonSet", "StatefulSet"} {
		for name, m := range all {
			m.kind = kind
			name = strings.ToLower(kind) + "-" + name
			m.on, m.onPods = named(m.on, name), named(m.onPods, name)
			every[name] = m
		}
	}
	return every
}

// named puts a name in the place of NAME.
func named(annotations map[string]string, name string) map[string]string {
	with := map[string]string{}
	for key, value := range annotations {
		with[key] = strings.ReplaceAll(value, "NAME", name)
	}
	return with
}

// define serves a kind of workload of another program, without its controller. A Rollout has no subresource for its status, as that of
// Argo Rollouts.
func define(t *testing.T, cp *controlplane.ControlPlane, kind string) {
	t.Helper()
	gvk := kindOf(kind)
	resource := controlplane.CustomResource{
		Group: gvk.Group, Kind: kind, Plural: strings.ToLower(kind) + "s", Versions: []string{gvk.Version}, WithoutStatus: kind == "Rollout",
	}
	require.NoError(t, cp.Apply(t.Context(), resource.Definition()))
	require.NoError(t, cp.AwaitServed(t.Context(), resource.Plural+"."+resource.Group))
}
