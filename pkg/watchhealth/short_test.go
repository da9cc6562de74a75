package watchhealth_test

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

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// empty accepts a request and ends its answer.
func empty() server { return content(200, strings.NewReader("")) }

// late is an answer without a byte that ends after a time.
type late time.Duration

func (l late) Read([]byte) (int, error) {
	<-time.After(time.Duration(l))
	return 0, io.EOF
}

func TestWatchesThatAreOnlyAcceptedFail(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, second server
		between       server
		healthy       bool
	}{
		"three in a row":         {first: empty(), second: empty(), between: status(200)},
		"and a list fails":       {first: empty(), second: empty(), between: status(503)},
		"an update ends two":     {first: status(200), second: empty(), between: status(200), healthy: true},
		"each is quiet for long": {first: content(200, late(time.Second)), second: content(200, late(time.Second)), between: status(200), healthy: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t)
				require.NoError(t, client.do(watch, tc.first))
				_ = client.do(list, tc.between)
				require.NoError(t, client.do(watch, empty()))
				assert.True(t, client.status().Healthy(), "one or two that end are nothing special")
				_ = client.do(list, tc.between)
				began := time.Now()
				require.NoError(t, client.do(watch, tc.second))
				assert.Equal(t, tc.healthy, client.status().Healthy())
				if tc.healthy {
					return
				}
				assert.Equal(t, watchhealth.Silent, client.status().Reason)
				assert.Contains(t, client.status().Detail, "end at once")
				require.NoError(t, client.do(list, status(200)))
				chunks := make(chan string)
				response, err := client.send(t.Context(), watch, stream(chunks))
				require.NoError(t, err)
				defer func() { assert.NoError(t, response.Body.Close()) }()
				assert.False(t, client.status().Since.After(began), "another one that is accepted proves nothing")
				assert.False(t, client.status().Healthy(), "another watch that is only accepted proves nothing")
				go func() { _, _ = io.Copy(io.Discard, response.Body) }()
				chunks <- "bookmark"
				synctest.Wait()
				assert.True(t, client.status().Healthy(), "the watch has delivered something")
				require.NoError(t, client.do(watch, empty()))
				assert.True(t, client.status().Healthy(), "they are counted anew")
			})
		})
	}
}

// The API server may stop now and then, and a quiet resource may have no bookmark in between.
func TestShortWatchesThatAreNotInARowAreNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		for _, answer := range []server{empty(), empty(), content(200, late(time.Second)), empty(), empty()} {
			require.NoError(t, client.do(watch, answer))
			assert.True(t, client.status().Healthy(), "fewer than three short watches follow each other")
		}
		require.NoError(t, client.do(watch, empty()))
		assert.False(t, client.status().Healthy(), "the third in a row")
		require.NoError(t, client.do(watch, content(200, late(time.Second))))
		assert.False(t, client.status().Healthy(), "it has delivered nothing")
	})
}

// What is in between sends a streaming list, and nothing of the watch behind it.
func TestStreamingListsWithoutAWatchFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		only := func(watched ...io.Reader) server { // the bookmark comes in parts
			begin, rest := strings.NewReader(`{"type":"BOOKMARK","k8s.io/initial-events-end`), strings.NewReader("\":\"true\"}\n")
			return content(200, io.MultiReader(append([]io.Reader{begin, rest}, watched...)...))
		}
		for range 2 {
			require.NoError(t, client.do(streaming, only()))
			assert.True(t, client.status().Healthy(), "fewer than three short watches follow each other")
		}
		began := time.Now()
		require.NoError(t, client.do(streaming, only()))
		assert.Equal(t, watchhealth.Silent, client.status().Reason)
		<-time.After(time.Minute)
		require.NoError(t, client.do(streaming, only(late(time.Second))))
		require.NoError(t, client.do(streaming, only()))
		assert.Equal(t, began, client.status().Since, "a list that is complete is no watch, nor is one that lasts and sends nothing")
		chunks := make(chan string)
		response, err := client.send(t.Context(), streaming, stream(chunks))
		require.NoError(t, err)
		defer func() { assert.NoError(t, response.Body.Close()) }()
		go func() { _, _ = io.Copy(io.Discard, response.Body) }()
		chunks <- "k8s.io/initial-events-end"
		synctest.Wait()
		assert.False(t, client.status().Healthy(), "a part of the bookmark is no event")
		chunks <- "\":\"true\"}\n"
		synctest.Wait()
		assert.False(t, client.status().Healthy(), "the rest of the bookmark is no event")
		chunks <- `{"type":"ADDED"}`
		synctest.Wait()
		assert.True(t, client.status().Healthy(), "the watch has delivered an event")
	})
}

// client-go would wait as long as the header says, within the request of a list or watch.
func TestLongRetryAfterIsNotPassedOn(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"1": "1", "10": "10", "11": "", "3600": "", "99999999999999999999": "99999999999999999999", // client-go reads no such number, nor a date
		"Wed, 21 Oct 2026 07:28:00 GMT": "Wed, 21 Oct 2026 07:28:00 GMT",
	} {
		answer := func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {value}}, Body: http.NoBody}, nil
		}
		response, err := newClient(t).send(t.Context(), list, answer)
		require.NoError(t, err)
		assert.Equal(t, want, response.Header.Get("Retry-After"), value)
		require.NoError(t, response.Body.Close())
	}
}

// client-go would repeat a write that a webhook rejects for now within one request, until that ends without an answer.
func TestRetryAfterOfRequestsThatTheCallerRepeatsIsNotPassedOn(t *testing.T) {
	t.Parallel()
	retried := watchhealth.Retried(t.Context())
	const cart = "/apis/apps/v1/namespaces/shop/deployments/cart"
	for _, c := range []struct {
		ctx    context.Context //nolint:containedctx // that of a request
		method string
		path   string
		status int
		want   string
	}{
		{t.Context(), http.MethodGet, cart, http.StatusServiceUnavailable, "1"},
		{t.Context(), http.MethodGet, cart, http.StatusTooManyRequests, "1"},
		{retried, http.MethodGet, cart, http.StatusServiceUnavailable, ""},
		{retried, http.MethodGet, cart, http.StatusTooManyRequests, ""},
		{t.Context(), http.MethodPatch, cart, http.StatusServiceUnavailable, ""},
		{t.Context(), http.MethodPost, cart, http.StatusInternalServerError, ""},
		{t.Context(), http.MethodPatch, cart, http.StatusTooManyRequests, ""},
		{t.Context(), http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", http.StatusTooManyRequests, "1"},
		{t.Context(), http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", http.StatusTooManyRequests, "1"},
		{t.Context(), http.MethodPost, "/proxy/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", http.StatusTooManyRequests, "1"},
		{retried, http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", http.StatusTooManyRequests, ""},
	} {
		next := func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
		}
		request, err := http.NewRequestWithContext(c.ctx, c.method, "https://api"+c.path, http.NoBody)
		require.NoError(t, err)
		response, err := newClient(t).monitor.Wrap(server(next)).RoundTrip(request)
		require.NoError(t, err)
		assert.Equal(t, c.want, response.Header.Get("Retry-After"), "%s %s %d", c.method, c.path, c.status)
		require.NoError(t, response.Body.Close())
	}
}
