package listwatch

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func TestClientAsksForOneVersionInOneContentTypeWithoutLimits(t *testing.T) {
	t.Parallel()
	for path, version := range map[string]schema.GroupVersion{
		"/base/api/v1":            {Version: "v1"},
		"/base/apis/apps/v1beta1": {Group: "apps", Version: "v1beta1"},
	} {
		to := &rest.Config{Host: "https://example.org/base", QPS: 5, Burst: 5}
		client, err := NewClient(to, http.DefaultClient, version, scheme.Codecs, runtime.ContentTypeProtobuf)
		require.NoError(t, err)
		assert.Equal(t, path, client.Get().URL().Path)
		assert.Equal(t, version, client.APIVersion())
		assert.Nil(t, client.GetRateLimiter(), "the API server limits requests")
		assert.Equal(t, &rest.Config{Host: "https://example.org/base", QPS: 5, Burst: 5}, to, "the argument stays as it is")
	}
}

func TestSlowPausesGrowFromOneSecondToThirty(t *testing.T) {
	t.Parallel()
	pauses := SlowBackoff()
	for _, least := range []float64{1, 2, 4, 8, 16, 30, 30, 30} {
		pause := pauses.Step().Seconds()
		assert.GreaterOrEqual(t, pause, least)
		assert.LessOrEqual(t, pause, least*1.1)
	}
}
