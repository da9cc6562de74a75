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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// Another mutating webhook, which the API server calls after ours, touches every workload; so ours is called again, with
// its own patch already in the object, and must not take that for somebody's edit.
func TestSecondWebhookDoesNotUndoAReload(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared, map[string]string{"second-webhook": "yes"})
	calls := second(t, s, func(uid string) string {
		return `[{"op":"add","path":"/metadata/labels","value":{"touched":"` + uid + `"}}]`
	})
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	for n := range 5 {
		before := calls.Load()
		s.SetConfigMap("app", "key", string(rune('2'+n)))
		s.AwaitChanges(w, n+1, "the content changed")
		s.Settled()
		s.RequireChanges(w, n+1, "each change restarts once")
		assert.Greater(t, calls.Load(), before, "the second webhook took part in the reload")
	}
	stored := s.Get(w)
	assert.NotContains(t, stored.GetAnnotations(), fixture.ConfigHash, "no dummy is left")
	assert.Contains(t, stored.GetAnnotations(), fixture.LastReload)
}

// Another mutating webhook adds a field to the template. A write that lacks it looks like a release to our first pass, and
// like nothing at all to the second.
func TestLaterWebhooksFieldIsNoRelease(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared, map[string]string{"second-webhook": "yes"})
	second(t, s, func(string) string {
		return `[{"op":"add","path":"/spec/template/spec/priorityClassName","value":"system-node-critical"}]`
	})
	s.ConfigMap("app", fixture.Data{"key": "1"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	w := s.Deployment("web", uses)
	put := func(why string) {
		t.Helper()
		for range 3 {
			require.NoError(t, s.Update(t.Context(), s.Manifest(w.Kind, w.Name, uses)))
		}
		s.Settled()
		s.RequireChanges(w, 0, why)
	}
	put("a PUT that changes nothing")
	require.NoError(t, s.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "app"}}))
	s.AwaitEvent(w, "ReloadHeld", "configmap/app")
	put("the same, while a reload is held")
	s.ConfigMap("app", fixture.Data{"key": "2"})
	s.AwaitChanges(w, 1, "it is back with another content")
	s.Settled()
	s.RequireChanges(w, 1, "once")
}

// second registers a webhook that counts its calls and answers each with a patch, made from the UID of the request.
func second(t *testing.T, s *fixture.Fixture, patch func(uid string) string) *atomic.Int64 {
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
			Patch: []byte(patch(string(review.Request.UID)[:8])),
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
	probe := s.Manifest("Deployment", "probe", fixture.Uses{})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, s.Create(t.Context(), probe.DeepCopy(), client.DryRunAll))
		assert.Positive(c, calls.Load(), "the second webhook is not effective yet")
	}, fixture.Patience, 50*time.Millisecond)
	return calls
}
