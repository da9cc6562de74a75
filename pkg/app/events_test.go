package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// roundTrips is a transport out of a function.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closing knows whether it was closed.
type closing struct {
	io.Reader

	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestPaceEvents(t *testing.T) {
	t.Parallel()
	const event, other = "https://x/apis/events.k8s.io/v1/namespaces/a/events", "https://x/apis/apps/v1/deployments"
	var underWay, most atomic.Int32
	arrived, answer := make(chan struct{}, 100), make(chan struct{})
	transport := paceEvents(roundTrips(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != "/apis/events.k8s.io/v1/namespaces/a/events" {
			return &http.Response{StatusCode: http.StatusOK}, nil
		}
		now := underWay.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		arrived <- struct{}{}
		<-answer
		underWay.Add(-1)
		return &http.Response{StatusCode: http.StatusCreated}, nil
	}))
	send := func(ctx context.Context, url string, body io.Reader) error {
		_, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, url, body)) //nolint:bodyclose // it has none
		return err
	}
	var senders sync.WaitGroup
	for range 20 {
		senders.Go(func() { assert.NoError(t, send(t.Context(), event, nil)) })
	}
	for range eventsUnderWay {
		<-arrived
	}
	require.NoError(t, send(t.Context(), other, nil), "a reload does not wait for Events")
	called, cancel := context.WithCancel(t.Context())
	cancel()
	body := &closing{Reader: strings.NewReader("an Event")}
	require.ErrorIs(t, send(called, event, body), context.Canceled, "an Event that waits ends with its context")
	assert.True(t, body.closed, "its body is closed")
	close(answer)
	senders.Wait()
	assert.Equal(t, int32(eventsUnderWay), most.Load(), "Events at the same time")
}
