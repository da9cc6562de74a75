package repository

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// With other names of Reloader's annotations, and with --auto-reload-all, the webhook must be asked about more workloads.
func TestWebhookSeesWorkloadsByTheFlagsOfReloader(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	api := startAPIServer(t).Client()
	renamed := register(t, api, template(t, helm,
		"reloader.annotations.auto-annotation=example.org/auto", "reloader.annotations.secret-annotation=example.org/secrets"))
	rendered := template(t, helm, "reloader.autoReloadAll=true")
	second := &unstructured.Unstructured{Object: rendered["MutatingWebhookConfiguration /pod-reloader"]}
	second.SetName("second")
	all := register(t, api, rendered)
	rendered = template(t, helm, "reloader.enabled=false", "annotationPrefix=example.org")
	third := &unstructured.Unstructured{Object: rendered["MutatingWebhookConfiguration /pod-reloader"]}
	third.SetName("third")
	without := register(t, api, rendered)

	tests := map[string]struct {
		reason       string
		annotations  map[string]string
		namespace    string
		renamed, all bool
		without      bool
	}{
		"plain":    {reason: "it may reference something", namespace: "default", all: true},
		"auto":     {reason: "by the other name", annotations: map[string]string{"example.org/auto": "true"}, namespace: "default", renamed: true, all: true, without: true},
		"secrets":  {reason: "by the other name", annotations: map[string]string{"example.org/secrets": "a"}, namespace: "default", renamed: true, all: true, without: true},
		"foreign":  {reason: "another key of that domain", annotations: map[string]string{"example.org/a": "b"}, namespace: "default", all: true, without: true},
		"reloader": {reason: "an excluded dialect costs no call", annotations: map[string]string{"reloader.stakater.com/auto": "true"}, namespace: "default", renamed: true, all: true},
		"default":  {reason: "another prefix", annotations: map[string]string{ours: "a"}, namespace: "default", renamed: true, all: true},
		"system":   {reason: "the control plane's own", annotations: map[string]string{"example.org/auto": "true"}, namespace: "kube-system"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := workload{annotations: tc.annotations}.object("Deployment", tc.namespace, name)
			require.NoError(t, api.Create(t.Context(), object))
			assert.Equal(t, tc.renamed, renamed.has(object, admissionv1.Create), "renamed: %s", tc.reason)
			assert.Equal(t, tc.all, all.has(object, admissionv1.Create), "all: %s", tc.reason)
			assert.Equal(t, tc.without, without.has(object, admissionv1.Create), "without Reloader, other prefix: %s", tc.reason)
		})
	}
}
