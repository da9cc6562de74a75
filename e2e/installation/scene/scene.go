// Package scene is what most end-to-end tests begin with: a namespace of its own, an outside observer in it, and short
// ways to write configuration and workloads as users do. It knows pod-reloader's annotations as a user knows them, from
// the documentation, and imports nothing of the program.
package scene

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/installation"
	"github.com/pod-reloader/pod-reloader/e2e/observe"
)

// The annotations, as the documentation names them.
const (
	ConfigMaps    = "pod-reloader.cs.sap.com/configmaps"
	Secrets       = "pod-reloader.cs.sap.com/secrets"
	ConfigHash    = "pod-reloader.cs.sap.com/config-hash"
	ConfigRestart = "pod-reloader.cs.sap.com/config-restart"
	ConfigRecord  = "pod-reloader.cs.sap.com/config-record"
	LastReload    = "pod-reloader.cs.sap.com/last-reload"
)

// Patience bounds every wait of a scene: long enough for a loaded machine, and a failure in the end.
const Patience = 2 * time.Minute

// Prompt is how long a write may take that the webhook was asked about for certain: it gives up reading after two seconds,
// the API server gives up waiting after three, and what takes longer may have passed without a stamp.
const Prompt = 2 * time.Second

// Scene is a namespace with an observer. Its methods fail the test when the API server refuses something.
type Scene struct {
	testing.TB
	client.Client
	Namespace    string
	Watcher      *observe.Watcher
	Installation *installation.Installation
}

// New creates a namespace, by default in the scope of every installation, and watches it.
func New(t testing.TB, in *installation.Installation, labels ...map[string]string) *Scene {
	t.Helper()
	cp := in.ControlPlane()
	namespace := cp.Namespace(t, append([]map[string]string{{"pod-reloader": "enabled"}}, labels...)...)
	t.Cleanup(func() { in.Explain(t, namespace) })
	return In(t, in, namespace)
}

// In is New in a namespace that exists.
func In(t testing.TB, in *installation.Installation, namespace string) *Scene {
	t.Helper()
	cp := in.ControlPlane()
	return &Scene{
		TB: t, Client: cp.Client(), Namespace: namespace, Installation: in,
		Watcher: observe.New(t, cp.Admin(), namespace),
	}
}

// Patiently is the context of one wait. Its cancel function is called at the end of the test.
func (s *Scene) Patiently() context.Context {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), Patience)
	s.Cleanup(cancel)
	return ctx
}

// Data is the content of a ConfigMap or a Secret.
type Data = map[string]string

// ConfigMap creates one.
func (s *Scene) ConfigMap(name string, data Data) *corev1.ConfigMap {
	s.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Data: data}
	require.NoError(s, s.Create(s.Context(), object))
	return object
}

// Secret creates one.
func (s *Scene) Secret(name string, data Data) *corev1.Secret {
	s.Helper()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		object.Data[key] = []byte(value)
	}
	require.NoError(s, s.Create(s.Context(), object))
	return object
}

// SetConfigMap changes one key of a ConfigMap.
func (s *Scene) SetConfigMap(name, key, value string) {
	s.Helper()
	s.Merge(&corev1.ConfigMap{}, name, fmt.Sprintf(`{"data":{%q:%q}}`, key, value))
}

// SetSecret changes one key of a Secret.
func (s *Scene) SetSecret(name, key, value string) {
	s.Helper()
	s.Merge(&corev1.Secret{}, name, fmt.Sprintf(`{"stringData":{%q:%q}}`, key, value))
}

// Merge applies a JSON merge patch to an object of the namespace; object gets the answer.
func (s *Scene) Merge(object client.Object, name, patch string) {
	s.Helper()
	object.SetNamespace(s.Namespace)
	object.SetName(name)
	require.NoError(s, s.Patch(s.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// Uses says what a workload depends on and how it is marked.
type Uses struct {
	// ConfigMaps and Secrets are listed in the annotations and read by envFrom.
	ConfigMaps, Secrets []string
	// Unread leaves out the envFrom, so that the pods do not require what is listed.
	Unread bool
	// Annotations and Labels are further ones of the workload.
	Annotations, Labels map[string]string
	// Replicas is how many pods it has; DaemonSets and CronJobs do not go by it.
	Replicas int
}

// Deployment creates one and returns its name for the observer.
func (s *Scene) Deployment(name string, uses Uses) observe.Workload {
	s.Helper()
	return s.Workload("Deployment", name, uses)
}

// Workload creates a Deployment, a StatefulSet, a DaemonSet or a CronJob.
func (s *Scene) Workload(kind, name string, uses Uses) observe.Workload {
	s.Helper()
	s.CreatePromptly(s.Manifest(kind, name, uses))
	return observe.Workload{Kind: kind, Namespace: s.Namespace, Name: name}
}

// attempts is how often a workload is created at most.
const attempts = 5

// CreatePromptly creates a workload. Where that took so long that the webhook may have been left out, as on a machine that
// stood still, it is deleted and created again; the last attempt counts however long it took. The object gets the answer.
func (s *Scene) CreatePromptly(object *unstructured.Unstructured) {
	s.Helper()
	manifest := object.DeepCopy()
	for n := range attempts {
		manifest.DeepCopyInto(object)
		began := time.Now()
		require.NoError(s, s.Create(s.Context(), object))
		took := time.Since(began)
		if took < Prompt || n == attempts-1 {
			return
		}
		s.Logf("creating %s %s took %s: once more", object.GetKind(), object.GetName(), took)
		require.NoError(s, s.Delete(s.Context(), object.DeepCopy()))
	}
}

// Manifest is a workload as a user's file has it: it knows nothing of our marks.
func (s *Scene) Manifest(kind, name string, uses Uses) *unstructured.Unstructured {
	s.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec(kind, name, uses)}}
	object.SetGroupVersionKind(GroupVersionKind(kind))
	object.SetNamespace(s.Namespace)
	object.SetName(name)
	object.SetLabels(uses.Labels)
	annotations := map[string]string{}
	if len(uses.ConfigMaps) > 0 {
		annotations[ConfigMaps] = strings.Join(uses.ConfigMaps, ",")
	}
	if len(uses.Secrets) > 0 {
		annotations[Secrets] = strings.Join(uses.Secrets, ", ")
	}
	for key, value := range uses.Annotations {
		annotations[key] = value
	}
	object.SetAnnotations(annotations)
	return object
}

// Get reads a workload, or anything else that the observer names, past all caches.
func (s *Scene) Get(of observe.Workload) *unstructured.Unstructured {
	s.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(GroupVersionKind(of.Kind))
	require.NoError(s, s.Client.Get(s.Context(), types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, object))
	return object
}

// TemplateAnnotations are those of the pod template of a workload.
func TemplateAnnotations(object *unstructured.Unstructured) map[string]string {
	annotations, _, _ := unstructured.NestedStringMap(object.Object, append(templatePath(object.GetKind()), "metadata", "annotations")...)
	return annotations
}

// GroupVersionKind is that of a built-in kind of workload.
func GroupVersionKind(kind string) schema.GroupVersionKind {
	if kind == "CronJob" || kind == "Job" {
		return schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: kind}
	}
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
}

func templatePath(kind string) []string {
	if kind == "CronJob" {
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return []string{"spec", "template"}
}

func spec(kind, name string, uses Uses) map[string]any {
	labels := map[string]any{"app": name}
	template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": podSpec(uses)}
	selector := map[string]any{"matchLabels": labels}
	switch kind {
	case "CronJob":
		template["spec"].(map[string]any)["restartPolicy"] = "Never"
		return map[string]any{
			"schedule":    "0 0 1 1 *",
			"jobTemplate": map[string]any{"spec": map[string]any{"template": template}},
		}
	case "DaemonSet":
		return map[string]any{"selector": selector, "template": template}
	case "StatefulSet":
		return map[string]any{"selector": selector, "template": template, "serviceName": name, "replicas": int64(uses.Replicas)}
	default:
		return map[string]any{"selector": selector, "template": template, "replicas": int64(uses.Replicas)}
	}
}

func podSpec(uses Uses) map[string]any {
	var sources []any
	add := func(field string, names []string) {
		for _, name := range names {
			sources = append(sources, map[string]any{field: map[string]any{"name": name}})
		}
	}
	if !uses.Unread {
		add("configMapRef", uses.ConfigMaps)
		add("secretRef", uses.Secrets)
	}
	container := map[string]any{"name": "main", "image": "example.com/app:1"}
	if len(sources) > 0 {
		container["envFrom"] = sources
	}
	return map[string]any{"containers": []any{container}}
}

// JSONPatch applies a JSON patch to an object of the namespace; object gets the answer.
func (s *Scene) JSONPatch(object client.Object, name, patch string) {
	s.Helper()
	object.SetNamespace(s.Namespace)
	object.SetName(name)
	require.NoError(s, s.Patch(s.Context(), object, client.RawPatch(types.JSONPatchType, []byte(patch))))
}
