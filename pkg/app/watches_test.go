package app

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

type answer func(r *http.Request) (*http.Response, error)

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func TestWatchesHaveMetrics(t *testing.T) {
	t.Parallel()
	monitor := &watchhealth.Monitor{}
	transport := monitor.Wrap(answer(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "secrets") {
			return nil, errors.New("reset")
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
	}))
	for _, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces/shop/secrets"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api"+path+"?watch=true", http.NoBody)
		require.NoError(t, err)
		if response, err := transport.RoundTrip(r); err == nil {
			require.NoError(t, response.Body.Close())
		}
	}
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(newWatchMetrics(monitor)))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pod_reloader_watch_failures_total Lists and watches that failed, by reason: refused, failed, no-answer, silent, incomplete.
# TYPE pod_reloader_watch_failures_total counter
pod_reloader_watch_failures_total{reason="failed",resource="secrets"} 1
# HELP pod_reloader_watch_healthy 1 if the list and watch of a resource work; 0 if they are refused, unanswered or silent. The namespace is empty for all namespaces.
# TYPE pod_reloader_watch_healthy gauge
pod_reloader_watch_healthy{namespace="",resource="configmaps"} 1
pod_reloader_watch_healthy{namespace="shop",resource="secrets"} 0
`)))
}
