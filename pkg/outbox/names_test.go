package outbox_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/outbox"
)

// answering answers each request.
type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

func clientOf(t *testing.T, answer answering) *outbox.Client {
	t.Helper()
	client, err := outbox.NewClient(&rest.Config{Host: "http://api"}, &http.Client{Transport: answer})
	require.NoError(t, err)
	return client
}

func answerOf(code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// An Event of core/v1 without eventTime can have a message of more than 1 MiB, and a tenant can write many.
func TestPageOfLargeEventsIsReadOneByOne(t *testing.T) {
	t.Parallel()
	const count = 10
	var names []string
	var used atomic.Int64
	client := clientOf(t, func(r *http.Request) *http.Response {
		assert.Equal(t, "/apis/events.k8s.io/v1/events?continue=token&fieldSelector=reason%3DReloaded&limit=500", r.URL.RequestURI())
		assert.Contains(t, r.Header.Get("Accept"), "as=PartialObjectMetadataList")
		body, server := io.Pipe()
		go func() {
			write := func(text string) {
				_, err := io.WriteString(server, text)
				assert.NoError(t, err)
			}
			message := strings.Repeat("x", 300<<10)
			write(`{"kind":"EventList","apiVersion":"events.k8s.io/v1","items":[`)
			for n := range count {
				if n > 0 {
					write(",")
				}
				write(fmt.Sprintf(`{"metadata":{"namespace":"shop","name":"e%d"},"note":%q}`, n, message))
				// The pipe has no buffer: that this Event was received means that the one before was used.
				assert.GreaterOrEqual(t, int(used.Load()), n, "Events are kept until the page ends")
			}
			write(`],"metadata":{"continue":"more"}}`)
			assert.NoError(t, server.Close())
		}()
		return answerOf(http.StatusOK, body)
	})
	options := metav1.ListOptions{Limit: 500, Continue: "token", FieldSelector: "reason=Reloaded"}
	next, err := client.Names(t.Context(), "", options, func(namespace, name string) {
		names = append(names, namespace+"/"+name)
		used.Add(1)
	})
	require.NoError(t, err)
	assert.Equal(t, "more", next)
	assert.Len(t, names, count)
	assert.Contains(t, names, "shop/e7")
}

func TestNamesOfANamespace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code   int
		answer string
		names  []string
		err    string
	}{
		"none":     {code: http.StatusOK, answer: `{"kind":"EventList","metadata":{},"items":null}`},
		"one":      {code: http.StatusOK, answer: `{"items":[{"metadata":{"name":"a","labels":{"name":"b"}}}]}`, names: []string{"/a"}},
		"cut off":  {code: http.StatusOK, answer: `{"items":[{"metadata":{"name":"a"}}`, names: []string{"/a"}, err: "unexpected EOF"},
		"no list":  {code: http.StatusOK, answer: `{"kind":"Status"}`, err: "the response is no list"},
		"no item":  {code: http.StatusOK, answer: `{"items":[1]}`, err: "cannot unmarshal"},
		"refused":  {code: http.StatusForbidden, answer: `{"kind":"Status","apiVersion":"v1","message":"no","reason":"Forbidden","code":403}`, err: "no"},
		"no token": {code: http.StatusOK, answer: `{"metadata":1,"items":[]}`, err: "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t, func(r *http.Request) *http.Response {
				assert.Equal(t, "/apis/events.k8s.io/v1/namespaces/shop/events", r.URL.RequestURI())
				return answerOf(tc.code, io.NopCloser(strings.NewReader(tc.answer)))
			})
			var names []string
			next, err := client.Names(t.Context(), "shop", metav1.ListOptions{}, func(namespace, name string) {
				names = append(names, namespace+"/"+name)
			})
			assert.Empty(t, next)
			assert.Equal(t, tc.names, names)
			if tc.err == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.err)
		})
	}
}
