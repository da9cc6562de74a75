package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
)

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
