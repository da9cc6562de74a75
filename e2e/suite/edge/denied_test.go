package edge_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// deniedByNotFound is about another webhook that does not find what it looks up itself, here a namespace: a Job is created again later, and
// a Deployment is reloaded later.
func deniedByNotFound(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	s := fixture.New(t, installation.NewPromptInTurn(t, cp, installation.Options{Components: []string{"recreate-jobs"}}))
	uses := fixture.Uses{Annotations: map[string]string{fixture.ReloaderConfigMaps: "app"}}
	app := s.ConfigMap("app", fixture.Data{"key": "1"})
	manifest := s.Manifest("Job", "import", uses)
	s.CreatePromptly(manifest)
	w, locked := observe.Workload{Kind: "Job", Namespace: s.Namespace, Name: "import"}, s.Deployment("web", uses)
	var denies atomic.Bool
	fixture.Webhook{Deny: func(request *admissionv1.AdmissionRequest) *metav1.Status {
		switch {
		case !denies.Load() || request.DryRun != nil && *request.DryRun:
			return nil
		case request.Kind.Kind == "Deployment":
			return &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "the Deployment is locked"}
		default:
			status := apierrors.NewNotFound(corev1.Resource("namespaces"), "tenants").Status()
			return &status
		}
	}}.Register(s)

	denies.Store(true)
	s.Merge(app, "app", `{"data":{"key":"2"}}`)
	s.AwaitEvent(w, "RecreationFailed", "create the deleted job again from secret", `namespaces "tenants" not found`)
	s.AwaitEvent(locked, "ReloadFailed", "the Deployment is locked")
	denies.Store(false)
	s.AwaitRecreated(w, manifest.GetUID())
	s.AwaitExactly(1, "it is reloaded once it is not locked any more", locked)
	s.Reported()
	for _, event := range s.Events(locked) {
		assert.NotContains(t, event.Note, "keeps changing")
	}
}
