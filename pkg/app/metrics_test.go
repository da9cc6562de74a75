package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMetricsSayWhetherADigestKeyIsLoaded(t *testing.T) {
	t.Parallel()
	registry, loaded := prometheus.NewRegistry(), false
	observed{
		synced: func() bool { return true }, keyed: func() bool { return loaded }, waiting: func() int { return 0 },
	}.register(registry)
	for _, value := range []string{"0", "1"} {
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pod_reloader_digest_key_loaded 1 if a digest key is loaded, else 0: then nothing is reloaded or stamped.
# TYPE pod_reloader_digest_key_loaded gauge
pod_reloader_digest_key_loaded `+value+"\n"), "pod_reloader_digest_key_loaded"))
		loaded = true
	}
}

// Reloader's manifests probe the port of the metrics: /live and /metrics.
func TestMetricsPortAnswersProbes(t *testing.T) {
	t.Parallel()
	p := &probes{log: logr.Discard()}
	metrics := metricsHandler(prometheus.NewRegistry())
	forbidden := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	status := func(handler http.Handler, path string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	for _, path := range []string{"/metrics", "/live", "/healthz", "/readyz"} {
		assert.Equal(t, http.StatusOK, status(metricsMux(metrics, p.handler()), path), path)
	}
	assert.Equal(t, http.StatusNotFound, status(metricsMux(metrics, p.handler()), "/other"))
	assert.Equal(t, http.StatusForbidden, status(metricsMux(forbidden, p.handler()), "/metrics"))
	p.stopping.Store(true)
	assert.Equal(t, http.StatusServiceUnavailable, status(metricsMux(metrics, p.handler()), "/readyz"))
	assert.Equal(t, http.StatusOK, status(metricsMux(metrics, p.handler()), "/live"))
}
