package check

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
)

// registerOthers has a control plane call the mutating webhooks of others that a history has, before or after ours: they are called in the
// order of the names of their configurations.
func registerOthers(t *testing.T, cp *controlplane.ControlPlane, where string) {
	t.Helper()
	var others []apiserver.Webhook
	switch where {
	case "before":
		others = append(others, simulate.Injector("a-injector.example.com", "first"))
	case "after":
		others = append(others, simulate.Injector("z-injector.example.com", "second"))
	case "around":
		others = append(others, simulate.Injector("a-injector.example.com", "first"), simulate.Injector("z-injector.example.com", "second"))
	}
	for _, other := range others {
		register(t, cp, other)
	}
}

// register serves a webhook and waits until it is called.
func register(t *testing.T, cp *controlplane.ControlPlane, other apiserver.Webhook) {
	t.Helper()
	calls := &atomic.Int64{}
	url, patient := listen(t, cp, other, calls), int32(30)
	none, config := admissionregistrationv1.SideEffectClassNone, other.Config
	config.SideEffects, config.TimeoutSeconds = &none, &patient
	config.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: cp.CA()}
	require.NoError(t, cp.Client().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: config.Name}, Webhooks: []admissionregistrationv1.MutatingWebhook{config},
	}))
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	require.NoError(t, poll.Until(ctx, "the API server to call "+config.Name, lookEvery, func(ctx context.Context) error {
		err := cp.Client().Create(ctx, probe(), client.DryRunAll)
		if err == nil && calls.Load() == 0 {
			err = errors.New("it is not called")
		}
		return err
	}))
}

// probe is a Deployment that is never stored.
func probe() *appsv1.Deployment {
	labels := map[string]string{"app": "probe"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
			},
		},
	}
}

// listen serves a webhook over HTTPS.
func listen(t *testing.T, cp *controlplane.ControlPlane, other apiserver.Webhook, calls *atomic.Int64) (url string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, cp.ServingCert(dir, "other.example.svc"))
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		err := json.NewDecoder(r.Body).Decode(review)
		if err == nil {
			calls.Add(1)
			review, err = other.Call(r.Context(), review)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(review) // a failed write shows as a failed call
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	return "https://" + server.Listener.Addr().(*net.TCPAddr).String() + "/"
}
