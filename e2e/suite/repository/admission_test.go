package repository

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

const ours = "pod-reloader.cs.sap.com/configmaps"

func TestAPIServer(t *testing.T) {
	t.Parallel()
	kubectl, cluster := tool(t, kubernetesTool(), "kubectl"), startAPIServer(t)
	t.Run("AcceptsManifests", func(t *testing.T) { acceptsManifests(t, kubectl, cluster) }) // the first: it expects an empty cluster
	t.Run("AcceptsChartValues", func(t *testing.T) { acceptsChartValues(t, cluster) })
	t.Run("NotesNameTheCheck", func(t *testing.T) { notesNameTheCheck(t, cluster) })
	t.Run("ClassifiesRequests", func(t *testing.T) { classifiesRequests(t, kubectl, cluster) })
	t.Run("UpgradesAcrossModes", func(t *testing.T) { upgradesAcrossModes(t, kubectl, cluster) })
	t.Run("AsksOnlyAboutWorkloadsThatNameUs", func(t *testing.T) { asksOnlyAboutWorkloadsThatNameUs(t, kubectl, cluster) })
	t.Run("DoesNotAskAboutItself", func(t *testing.T) { doesNotAskAboutItself(t, cluster) })
	t.Run("GuardRestrictsPublishing", func(t *testing.T) { guardRestrictsPublishing(t, cluster) }) // the last: the guard stays
}

// The API server accepts every object of every variant, knows each field, and has no warnings: neither about
// the restricted pod security of the namespace nor about an expression that it cannot compile.
func acceptsManifests(t *testing.T, kubectl string, cluster *controlplane.ControlPlane) {
	t.Helper()
	warnings := &controlplane.Warnings{}
	config := cluster.Admin()
	config.WarningHandler = warnings
	api, err := client.New(config, client.Options{})
	require.NoError(t, err)
	for _, namespace := range []string{"pod-reloader", "my-app"} {
		createNamespace(t, api, namespace, map[string]string{"pod-security.kubernetes.io/warn": "restricted"})
	}
	for name, variant := range variants {
		for key, object := range kustomize(t, kubectl, variant.components...) {
			if group, _ := object["apiVersion"].(string); group == "cert-manager.io/v1" || object["kind"] == "Namespace" {
				continue // no such kind here; created above
			}
			err := api.Create(t.Context(), &unstructured.Unstructured{Object: object}, client.DryRunAll,
				client.FieldValidation(metav1.FieldValidationStrict))
			assert.NoError(t, err, "%s: %s", name, key)
		}
	}
	assert.Empty(t, warnings.Take())
}

// Which writes reach the webhook, by the rules, selectors and conditions of the manifests, on a real API server.
func asksOnlyAboutWorkloadsThatNameUs(t *testing.T, kubectl string, cluster *controlplane.ControlPlane) {
	t.Helper()
	api := cluster.Client()
	seen := register(t, api, kustomize(t, kubectl))

	annotated := map[string]string{ours: "app"}
	stakater := map[string]string{"configmap.reloader.stakater.com/reload": "app"}
	foreign := map[string]string{"example.com/reloader": "app"}
	tests := map[string]struct {
		reason         string
		kind           string
		before, after  workload
		create, update bool
		namespace      string
	}{
		"NotOurs":     {reason: "the write of a workload that is not ours does not reach the webhook", before: workload{annotations: foreign}},
		"Nothing":     {reason: "a workload without any annotation causes no error of the condition either"},
		"StatefulSet": {reason: "by its kind", kind: "StatefulSet", before: workload{annotations: annotated}, create: true, update: true},
		"DaemonSet":   {reason: "by its kind", kind: "DaemonSet", before: workload{annotations: annotated}, create: true, update: true},
		"Workload": {
			reason: "annotated before and after",
			before: workload{annotations: annotated}, after: workload{annotations: annotated}, create: true, update: true,
		},
		"OptIn": {
			reason: "the new object names us",
			after:  workload{annotations: annotated}, update: true,
		},
		"OptOut": {
			reason: "the old object named us: its managed annotations are kept",
			before: workload{annotations: annotated}, create: true, update: true,
		},
		"Template": {
			reason: "only the pod template has a managed annotation",
			before: workload{template: map[string]string{"pod-reloader.cs.sap.com/config-hash": "x"}}, create: true, update: true,
		},
		"OtherDialect": {
			reason: "prefixed by a kind",
			before: workload{annotations: stakater}, after: workload{annotations: stakater}, create: true, update: true,
		},
		"OtherDialectInTemplate": {
			reason: "Reloader reads the pod template as well",
			before: workload{template: map[string]string{"reloader.stakater.com/auto": "true"}}, create: true, update: true,
		},
		"CronJob": {
			reason: "annotated itself", kind: "CronJob",
			before: workload{annotations: annotated}, create: true, update: true,
		},
		"CronJobTemplate": {
			reason: "its pod template is two levels down", kind: "CronJob",
			before: workload{template: annotated}, create: true, update: true,
		},
		"CronJobNotOurs": {reason: "its path is guarded, too", kind: "CronJob", before: workload{template: foreign}},
		"Job": {
			reason: "its template is immutable: at creation only", kind: "Job",
			before: workload{annotations: annotated}, after: workload{annotations: annotated}, create: true,
		},
		"Ignored": {
			reason: "excluded by label: its managed annotations are kept nevertheless",
			before: workload{annotations: annotated, labels: map[string]string{"pod-reloader.cs.sap.com/ignored": "true"}},
			after:  workload{annotations: annotated, labels: map[string]string{"pod-reloader.cs.sap.com/ignored": "true"}},
			create: true, update: true,
		},
		"DisabledLater": {
			reason: "the write that excludes reaches the webhook, which purges the reload request",
			before: workload{annotations: annotated},
			after:  workload{annotations: annotated, labels: map[string]string{"pod-reloader.cs.sap.com/disabled": "true"}},
			create: true, update: true,
		},
		"IgnoredIsFalse": {
			reason: "only the value true excludes",
			before: workload{annotations: annotated, labels: map[string]string{"pod-reloader.cs.sap.com/ignored": "false"}},
			create: true, update: true,
		},
		"KubeSystem": {
			reason: "the namespace of the control plane", namespace: "kube-system",
			before: workload{annotations: annotated}, after: workload{annotations: annotated},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.kind == "" {
				test.kind = "Deployment"
			}
			if test.namespace == "" {
				test.namespace = "default"
			}
			object := test.before.object(test.kind, test.namespace, strings.ToLower(name))
			require.NoError(t, api.Create(t.Context(), object))
			assert.Equal(t, test.create, seen.has(object, admissionv1.Create), "at creation: %s", test.reason)

			fresh := &unstructured.Unstructured{}
			fresh.SetGroupVersionKind(object.GroupVersionKind())
			require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(object), fresh))
			after := test.after.object(test.kind, test.namespace, object.GetName())
			fresh.SetAnnotations(after.GetAnnotations())
			fresh.SetLabels(after.GetLabels())
			if test.kind != "Job" {
				fresh.Object["spec"] = after.Object["spec"]
			}
			require.NoError(t, api.Update(t.Context(), fresh))
			assert.Equal(t, test.update, seen.has(object, admissionv1.Update), "at the update: %s", test.reason)
		})
	}
}

// workload is what the API server decides by.
type workload struct {
	annotations, labels, template map[string]string
}

func (w workload) object(kind, namespace, name string) *unstructured.Unstructured {
	labels := map[string]any{"app": "x"}
	template := map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
	}
	if len(w.template) > 0 {
		_ = unstructured.SetNestedStringMap(template, w.template, "metadata", "annotations")
	}
	spec := map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template}
	apiVersion := "apps/v1"
	switch kind {
	case "Job":
		apiVersion = "batch/v1"
		_ = unstructured.SetNestedField(template, "Never", "spec", "restartPolicy")
		spec = map[string]any{"template": template}
	case "CronJob":
		apiVersion = "batch/v1"
		_ = unstructured.SetNestedField(template, "Never", "spec", "restartPolicy")
		spec = map[string]any{
			"schedule": "0 0 1 1 *", "jobTemplate": map[string]any{"spec": map[string]any{"template": template}},
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetAnnotations(w.annotations)
	object.SetLabels(w.labels)
	return object
}

// startAPIServer runs what admits objects and nothing that acts on them.
func startAPIServer(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	return controlplane.New(t, controlplane.Options{
		Without: []string{controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK},
	})
}

func createNamespace(t *testing.T, api client.Client, name string, labels map[string]string) {
	t.Helper()
	require.NoError(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
}

// register installs the webhook configuration of a rendering, with a server of the test in place of the Service, and
// returns once the API server calls it.
func register(t *testing.T, api client.Client, rendered objects) *requests {
	t.Helper()
	seen := &requests{}
	server := httptest.NewTLSServer(seen)
	t.Cleanup(server.Close)
	configuration := &unstructured.Unstructured{Object: rendered["MutatingWebhookConfiguration /pod-reloader"]}
	webhook, _ := list(configuration.Object["webhooks"])[0].(map[string]any)
	webhook["clientConfig"] = map[string]any{
		"url": server.URL + "/mutate", "caBundle": pemOf(server.Certificate()),
	}
	// A condition that fails must fail the test.
	webhook["failurePolicy"] = "Fail"
	// A slow machine must not: this is the largest value.
	webhook["timeoutSeconds"] = int64(30)
	require.NoError(t, api.Create(t.Context(), configuration))
	t.Cleanup(func() { assert.NoError(t, api.Delete(context.WithoutCancel(t.Context()), configuration)) })
	require.Eventually(t, func() bool {
		probe := workload{annotations: map[string]string{ours: "probe", "example.org/probe": "another prefix"}}.object("Deployment", "default", "probe")
		return api.Create(t.Context(), probe, client.DryRunAll) == nil && seen.any()
	}, 2*time.Minute, 50*time.Millisecond, "the API server does not call the webhook")
	return seen
}

func pemOf(certificate *x509.Certificate) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
}

// requests is a webhook that allows every request and records it.
type requests struct {
	mu   sync.Mutex
	keys []string
}

func (r *requests) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.keys = append(r.keys, key(review.Request.Kind.Kind, review.Request.Namespace, review.Request.Name, review.Request.Operation))
	r.mu.Unlock()
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func (r *requests) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys) > 0
}

// has does not wait: the API server answers after the webhook.
func (r *requests) has(object client.Object, operation admissionv1.Operation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := key(object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName(), operation)
	return slices.Contains(r.keys, want)
}

func key(kind, namespace, name string, operation admissionv1.Operation) string {
	return kind + " " + namespace + "/" + name + " " + string(operation)
}
