package reloader_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// profiles asks both ports for profiles. The port of the metrics is open to more than those who may see them.
func (w *where) profiles(t *testing.T) {
	t.Parallel()
	home := w.home(t)
	profiles := freeAddress(t, w.cp)
	metrics, process := w.run(home, "--namespaces="+home.namespace, "--pprof-addr="+profiles)
	assert.Equal(t, http.StatusNotFound, statusCode(t, metrics, "/debug/pprof/"))
	_, err := answerOf(t, profiles, "/debug/pprof/")
	require.Error(t, err, "no flag has asked for profiles")
	require.NoError(t, process.Stop(t.Context()))

	metrics, _ = w.run(home, "--namespaces="+home.namespace, "--enable-pprof", "--pprof-addr="+profiles)
	assert.Equal(t, http.StatusOK, statusCode(t, profiles, "/debug/pprof/goroutine?debug=1"))
	assert.Equal(t, http.StatusNotFound, statusCode(t, metrics, "/debug/pprof/"))
	for _, path := range []string{"/live", "/metrics", "/healthz"} {
		assert.Equal(t, http.StatusOK, statusCode(t, metrics, path))
	}
}

// answerOf returns the status of an answer, or why there is none.
func answerOf(t *testing.T, address, path string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func statusCode(t *testing.T, address, path string) int {
	t.Helper()
	code, err := answerOf(t, address, path)
	require.NoError(t, err)
	return code
}
