package app

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// aggregating is an API server with aggregated discovery, and the answer of an API server behind it about DeploymentConfigs.
type aggregating struct {
	freshness string
	code      int
}

func (a aggregating) RoundTrip(r *http.Request) (*http.Response, error) {
	answers := map[string]string{
		"/api": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":""},"versions":[` +
			`{"version":"v1","freshness":"Current","resources":[{"resource":"configmaps",` +
			`"responseKind":{"group":"","version":"v1","kind":"ConfigMap"},"scope":"Namespaced","verbs":["get"]}]}]}]}`,
		"/apis": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"apps.openshift.io"},` +
			`"versions":[{"version":"v1","freshness":"` + a.freshness + `"}]}]}`,
	}
	code, kind, body := http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", answers[r.URL.Path]
	if body == "" {
		code, kind, body = a.code, "text/plain", http.StatusText(a.code)
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// An aggregated API server that is down when the program starts, as while a cluster is upgraded, is no kind that is not installed.
func TestKindOfAnAggregatedAPIThatDoesNotAnswerIsAFailure(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server aggregating
		absent bool
	}{
		"it does not answer":       {server: aggregating{"Stale", http.StatusServiceUnavailable}},
		"it does not have the API": {server: aggregating{"Current", http.StatusNotFound}, absent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mapper, err := NewMapper(&rest.Config{Host: "http://server", QPS: -1}, &http.Client{Transport: tc.server})
			require.NoError(t, err)
			kind := workload.DeploymentConfig().GroupVersionKind
			_, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
			require.Error(t, err)
			assert.Equal(t, tc.absent, meta.IsNoMatchError(err), "%v", err)
		})
	}
}
