package poke_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/poke"
)

// unverifiable is the answer of an API server to a request that the webhook could not verify.
type unverifiable struct{ requests int }

func (u *unverifiable) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	u.requests++
	return &http.Response{
		StatusCode: http.StatusServiceUnavailable,
		Header:     http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}},
		Body: io.NopCloser(strings.NewReader(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":503,"reason":"ServiceUnavailable",
			"message":"the digest cannot be verified","details":{"causes":[{"reason":"DigestUnverifiable"}],"retryAfterSeconds":1}}`)),
		Request: r,
	}, nil
}

func TestClientRepeatsAnUnverifiableRequest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		timeout  time.Duration
		want     poke.Outcome
		requests int
		text     string
	}{
		"ten times":                   {30 * time.Second, poke.Unverifiable, 11, "the digest cannot be verified"},
		"until its context ends":      {4500 * time.Millisecond, poke.Failed, 5, "context deadline exceeded"},
		"not if the second is longer": {500 * time.Millisecond, poke.Failed, 1, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &unverifiable{}
				deployments := meta.NewDefaultRESTMapper(nil)
				deployments.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
				c, err := client.New(&rest.Config{Host: "https://api.example.com", Transport: server, QPS: -1}, client.Options{Mapper: deployments})
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), tc.timeout)
				defer cancel()
				began := time.Now()
				result, err := poke.Do(ctx, c, request())
				require.ErrorContains(t, err, tc.text)
				assert.Equal(t, tc.want, result.Outcome)
				assert.Equal(t, tc.requests, server.requests)
				assert.Equal(t, min(tc.timeout, 10*time.Second), time.Since(began))
			})
		})
	}
}
