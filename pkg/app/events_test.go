package app

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// Events that wait end with their context, and other requests never wait.
func TestEventThatWaitsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	const event, other = "https://x/apis/events.k8s.io/v1/namespaces/a/events", "https://x/apis/apps/v1/deployments"
	synctest.Test(t, func(t *testing.T) {
		reloading := make(chan struct{})
		transport := paceEvents(roundTrips(func(*http.Request) (*http.Response, error) {
			<-reloading
			return &http.Response{StatusCode: http.StatusOK}, nil
		}))
		send := func(ctx context.Context, url string, body io.Reader) error {
			_, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, url, body)) //nolint:bodyclose // it has none
			return err
		}
		go func() { assert.NoError(t, send(t.Context(), other, nil)) }()
		synctest.Wait()
		called, cancel := context.WithCancel(t.Context())
		cancel()
		body := &closing{Reader: strings.NewReader("an Event")}
		require.ErrorIs(t, send(called, event, body), context.Canceled)
		assert.True(t, body.closed, "its body is closed")
		close(reloading)
	})
}

// Events give way to reloads, but not for ever.
func TestEventsGiveWay(t *testing.T) {
	t.Parallel()
	const event, other = "https://x/apis/events.k8s.io/v1/namespaces/a/events", "https://x/apis/apps/v1/deployments"
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		reloading := make(chan struct{})
		transport := paceEvents(roundTrips(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, eventsPath) {
				told.Add(1)
			} else {
				<-reloading
			}
			return &http.Response{StatusCode: http.StatusOK}, nil
		}))
		send := func(url string) {
			_, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)) //nolint:bodyclose // it has none
			assert.NoError(t, err)
		}
		send(event)
		assert.Equal(t, int32(1), told.Load(), "nothing else is under way")

		go send(other)
		go send(other)
		synctest.Wait()
		go send(event)
		time.Sleep(eventsGiveWay - 1) //nolint:forbidigo // the time is fake
		synctest.Wait()
		assert.Equal(t, int32(1), told.Load(), "reloads are under way")
		reloading <- struct{}{}
		synctest.Wait()
		assert.Equal(t, int32(1), told.Load(), "one still is")
		reloading <- struct{}{}
		synctest.Wait()
		assert.Equal(t, int32(2), told.Load(), "they have their answers")

		go send(other)
		synctest.Wait()
		for range 5 {
			go send(event)
		}
		time.Sleep(eventsGiveWay - 1) //nolint:forbidigo // the time is fake
		synctest.Wait()
		assert.Equal(t, int32(2), told.Load(), "a reload is under way")
		time.Sleep(time.Nanosecond) //nolint:forbidigo // the time is fake
		synctest.Wait()
		assert.Equal(t, int32(7), told.Load(), "where there is no end of reloads an Event waits so long, and no longer for those before it")
		close(reloading)
	})
}
