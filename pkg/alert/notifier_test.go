package alert

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
)

// token is the part of the URLs that must be nowhere else.
const token = "T0KEN-in-the-path"

// running is a Notifier that delivers to a URL until the test ends.
type running struct {
	*Notifier
	log    logtest.Lines
	cancel context.CancelFunc
	ended  chan struct{}
}

func start(t *testing.T, target string) running {
	t.Helper()
	return startWith(t, Config{Sink: Webhook, URL: parse(t, target)})
}

// startWith may be given a transport in the place of the network.
func startWith(t *testing.T, config Config, transport ...http.RoundTripper) running {
	t.Helper()
	log, lines := logtest.New()
	r := running{log: lines, ended: make(chan struct{})}
	r.Notifier = New(config, prometheus.NewRegistry(), log)
	if len(transport) > 0 {
		r.client.client.Transport = transport[0]
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		_ = r.Start(ctx)
	}()
	t.Cleanup(func() { cancel(); <-r.ended })
	return r
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

func (r running) has(o outcome) float64 {
	return testutil.ToFloat64(r.counts.WithLabelValues(string(o)))
}

func (r running) await(t *testing.T, o outcome, n float64) {
	t.Helper()
	require.Eventually(t, func() bool { return r.has(o) == n }, 2*time.Minute, 5*time.Millisecond, "%s: %v, log %s", o, r.has(o), r.log)
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestAlertIsPosted(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 2)
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		assert.Equal(t, http.MethodPost, r.Method)
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		assert.Equal(t, "/"+token, r.URL.Path)
		bodies <- string(body)
	})
	n := start(t, server.URL+"/"+token)
	n.Offer(cart())
	n.await(t, delivered, 1)
	want, err := Config{Sink: Webhook}.payload(cart())
	require.NoError(t, err)
	assert.Equal(t, string(want), <-bodies)
	assert.Empty(t, bodies, "once")
	assert.Empty(t, n.log())
}

// A sink that fails for a while gets the alert later.
func TestFailingSinkIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"unavailable": http.StatusServiceUnavailable, "rate limit": http.StatusTooManyRequests} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := make(chan int, 2)
			answers <- status
			answers <- http.StatusOK
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(<-answers)
			})
			n := start(t, server.URL)
			n.Offer(cart())
			n.await(t, delivered, 1)
			assert.Empty(t, answers)
			assert.Zero(t, n.has(failed))
		})
	}
}

// What the sink does not want is not tried again. A redirect is not followed.
func TestRefusedAlertIsDropped(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	for name, answer := range map[string]struct {
		status   int
		location string
	}{
		"gone":                                {http.StatusGone, elsewhere.URL},
		"unknown":                             {http.StatusNotFound, elsewhere.URL},
		"redirect":                            {http.StatusTemporaryRedirect, elsewhere.URL},
		"redirect of another method":          {http.StatusMovedPermanently, elsewhere.URL},
		"redirect to what is no URL":          {http.StatusMovedPermanently, "http://chat.example:443:8443/" + token},
		"redirect of the message to no URL":   {http.StatusPermanentRedirect, "http://chat.example:443:8443/" + token},
		"redirect that names no destination":  {http.StatusFound, ""},
		"redirect to the same path elsewhere": {http.StatusFound, "/" + token},
	} {
		status := answer.status
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := make(chan struct{}, attempts)
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests <- struct{}{}
				w.Header().Set("Location", answer.location)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, token)
			})
			n := start(t, server.URL+"/"+token)
			n.Offer(cart())
			n.await(t, refused, 1)
			assert.Len(t, requests, 1)
			assert.Contains(t, n.log.String(), http.StatusText(status))
			assert.NotContains(t, n.log.String(), token)
		})
	}
}

// Nothing of the URL is in an error, whatever goes wrong.
func TestErrorsDoNotHaveTheURL(t *testing.T) {
	t.Parallel()
	const gone = "127.0.0.1:1" // nothing listens here
	hangs := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client has gone
		<-r.Context().Done()
	})
	closes := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) {
			_ = connection.Close()
		}
	})
	for name, c := range map[string]Config{
		"gone":           {URL: parse(t, "http://"+gone+"/"+token)},
		"slow":           {URL: parse(t, hangs.URL+"/"+token)},
		"closes":         {URL: parse(t, closes.URL+"/"+token)},
		"no TLS":         {URL: parse(t, strings.Replace(closes.URL, "http:", "https:", 1)+"/"+token)},
		"proxy is gone":  {URL: parse(t, "http://chat.example/"+token), Proxy: parse(t, "http://user:"+token+"@"+gone)},
		"unknown scheme": {URL: parse(t, "gopher://chat.example/"+token)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPoster(c)
			p.client.Timeout = 200 * time.Millisecond
			status, _, err := p.attempt(t.Context(), []byte("{}"))
			require.Error(t, err)
			assert.Zero(t, status)
			assert.NotContains(t, err.Error(), token)
		})
	}
}

func TestAlertGoesThroughTheProxy(t *testing.T) {
	t.Parallel()
	urls := make(chan string, 1)
	proxy := serve(t, func(_ http.ResponseWriter, r *http.Request) { urls <- r.URL.String() })
	n := startWith(t, Config{Sink: Slack, URL: parse(t, "http://chat.example/"+token), Proxy: parse(t, proxy.URL)})
	n.Offer(cart())
	n.await(t, delivered, 1)
	assert.Equal(t, "http://chat.example/"+token, <-urls)
}

// silent returns a transport whose connections take a request and never answer it. They need no network, so that time is fake.
func silent() *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, sinks := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, sinks) }() // ends with the connection
		return ours, nil
	}}
}

// A sink that does not answer delays no caller. Alerts beyond the queue's size are dropped and counted.
func TestOfferNeverBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := startWith(t, Config{Sink: Webhook, URL: parse(t, "http://chat.example/"+token)}, silent())
		began := time.Now()
		for range senders {
			n.Offer(cart())
		}
		synctest.Wait() // each sender has a request that is not answered
		for range queueSize + 100 {
			n.Offer(cart())
		}
		assert.Zero(t, time.Since(began), "no offer waits for the sink")
		assert.InDelta(t, 100, n.has(overflow), 0, "nor for a place in the queue")
		assert.Len(t, n.log(), 1, "a failure is logged once in a while")
		n.cancel()
		<-n.ended
		assert.Equal(t, stopGrace, time.Since(began), "the end does not wait for the sink")
		assert.InDelta(t, queueSize+senders+100, n.has(overflow)+n.has(failed), 0, "each one is counted")
		assert.NotContains(t, n.log.String(), token)
	})
}

// held is a transport that answers when it is released, or when the request is given up.
type held chan struct{}

func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-h:
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// What is queued when the program stops is delivered, as far as the time for it goes; what comes later is counted.
func TestStopDeliversTheQueue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after     time.Duration
		delivered float64
	}{
		"in time":  {stopGrace - time.Millisecond, 20},
		"too late": {stopGrace + time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(held)
				n := startWith(t, Config{Sink: Webhook, URL: parse(t, "http://chat.example")}, release)
				for range 20 {
					n.Offer(cart())
				}
				n.cancel()
				synctest.Wait()
				n.Offer(cart())
				time.AfterFunc(tc.after, func() { close(release) })
				<-n.ended
				assert.InDelta(t, tc.delivered, n.has(delivered), 0)
				assert.InDelta(t, 21-tc.delivered, n.has(overflow)+n.has(failed), 0, "each of the others is counted")
			})
		})
	}
}

func TestConfigIsPrintedWithoutTheURL(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "slack", Config{Sink: Slack, URL: parse(t, "https://chat.example/"+token)}.String())
}
