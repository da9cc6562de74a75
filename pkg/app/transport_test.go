package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// TestClientsObserveWatchesAndLimitLargeResponses has an API server whose watches are refused, and whose objects are large.
func TestClientsObserveWatchesAndLimitLargeResponses(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(make([]byte, largeread.Size+1))
	}))
	defer server.Close()
	config, watches := &rest.Config{Host: server.URL}, &watchhealth.Monitor{}
	wrapTransport(config, watches)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	widgets := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})

	_, err = widgets.Get(largeread.Refuse(t.Context()), "a", metav1.GetOptions{})
	require.ErrorIs(t, err, largeread.ErrLarge)
	_, err = widgets.Watch(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	assert.NotEmpty(t, watches.Failures(), "the refused watch")
}
