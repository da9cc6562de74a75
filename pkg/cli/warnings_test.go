package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// warningServer answers the check of a webhook: it admits the Deployment without a stamp, with warnings.
func warningServer(t *testing.T, warnings ...string) *rest.Config {
	t.Helper()
	return admittingServer(t, `{}`, warnings...)
}

// admittingServer admits the Deployment with a spec.
func admittingServer(t *testing.T, spec string, warnings ...string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			for _, warning := range warnings {
				w.Header().Add("Warning", warning)
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"x"},"spec":` + spec + `}`))
		case r.URL.Path == "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`))
		case r.URL.Path == "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		case r.URL.Path == "/apis/apps/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["create"]}]}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// The reason of a webhook that is called and cannot stamp is in a warning.
func TestCheckReportsTheWarningOfTheWebhook(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]string{
		"unread": "pod-reloader did not update the config-hash: configmaps is forbidden; it retries by itself",
		"full":   "pod-reloader could not check this write: too many requests at the same time; it retries by itself",
		"late":   "pod-reloader could not check this write within 9s: too many requests at the same time; it retries by itself",
		"panic":  "pod-reloader failed and passed this write unchanged; it retries by itself, and its log has the details",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := Run(t.Context(), Process{
				Args: []string{"check", "-n", "shop", "--timeout=0s"}, Stdout: &stdout, Stderr: &stderr, Getenv: unset,
				Cluster: warningServer(t, `299 - "`+reason+`"`, `299 - "`+reason+`"`, "299 - \"other\u202e2J\"", `110 cache "stale"`),
			})
			assert.Equal(t, 1, code)
			assert.Equal(t, "pod-reloader: warning: "+reason+"\n"+
				"pod-reloader: warning: other\ufffd2J\n"+
				"pod-reloader: check the webhook in namespace shop: the API server calls the webhook, but it did not stamp the Deployment: "+reason+"\n", stderr.String())
			require.Empty(t, stdout.String())
		})
	}
}

// Warnings of others say nothing about the webhook.
func TestCheckWithoutAWarningOfTheWebhook(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), Process{
		Args: []string{"check", "-n", "shop", "--timeout=0s"}, Stdout: &stdout, Stderr: &stderr, Getenv: unset,
		Cluster: warningServer(t, `299 - "unknown field"`),
	})
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr.String(), "no webhook stamped the Deployment: check that pod-reloader handles the namespace")
}

// A dry run creates nothing that it could update: a webhook that is called for creations only stamps the Deployment as well.
func TestCheckSaysThatItHasCheckedCreationsOnly(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), Process{
		Args: []string{"check", "-n", "shop", "--timeout=0s"}, Stdout: &stdout, Stderr: &stderr, Getenv: unset,
		Cluster: admittingServer(t, `{"template":{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":"x"}}}}`),
	})
	assert.Zero(t, code)
	assert.Empty(t, stderr.String())
	assert.Equal(t, "the webhook stamps workloads that are created in namespace shop; updates are not checked\n", stdout.String())
}
