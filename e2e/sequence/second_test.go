package sequence_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/installation/scene"
)

// Another mutating webhook, which the API server calls after ours, touches every workload; so ours is called again, with
// its own patch already in the object, and must not take that for somebody's edit.
func TestSecondWebhookDoesNotUndoAReload(t *testing.T) {
	t.Parallel()
	s := scene.New(t, shared, map[string]string{"second-webhook": "yes"})
	calls := second(t, s)
	s.ConfigMap("app", scene.Data{"key": "1"})
	w := s.Deployment("web", scene.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	for n := range 5 {
		before := calls.Load()
		s.SetConfigMap("app", "key", string(rune('2'+n)))
		s.AwaitChanges(w, n+1, "the content changed")
		s.Settled()
		s.RequireChanges(w, n+1, "each change restarts once")
		assert.Greater(t, calls.Load(), before, "the second webhook took part in the reload")
	}
	stored := s.Get(w)
	assert.NotContains(t, stored.GetAnnotations(), scene.ConfigHash, "no dummy is left")
	assert.Contains(t, stored.GetAnnotations(), scene.LastReload)
}

// second registers a webhook that counts its calls and changes an annotation of the workload with each.
func second(t *testing.T, s *scene.Scene) *atomic.Int64 {
	t.Helper()
	cp := s.Installation.ControlPlane()
	dir := t.TempDir()
	require.NoError(t, cp.ServingCert(dir, "second.example.svc"))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	calls := &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		calls.Add(1)
		jsonPatch := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: &jsonPatch,
			Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"touched":"` + string(review.Request.UID)[:8] + `"}}]`),
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // a failed write shows as a failed call
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)

	url, policy, none := "https://"+server.Listener.Addr().(*net.TCPAddr).String()+"/", registrationv1.Fail, registrationv1.SideEffectClassNone
	configuration := &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "z-second-" + s.Namespace},
		Webhooks: []registrationv1.MutatingWebhook{{
			Name:                    "second.example.com",
			ClientConfig:            registrationv1.WebhookClientConfig{URL: &url, CABundle: cp.CA()},
			FailurePolicy:           &policy,
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"second-webhook": "yes"}},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create, registrationv1.Update},
				Rule:       registrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	}
	require.NoError(t, s.Create(t.Context(), configuration))
	t.Cleanup(func() { assert.NoError(t, s.Delete(context.WithoutCancel(t.Context()), configuration)) })
	probe := s.Manifest("Deployment", "probe", scene.Uses{})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, s.Create(t.Context(), probe.DeepCopy(), client.DryRunAll))
		assert.Positive(c, calls.Load(), "the second webhook is not effective yet")
	}, scene.Patience, 50*time.Millisecond)
	return calls
}
