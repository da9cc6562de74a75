package keyring_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/keyring"
	"github.com/pod-reloader/pod-reloader/pkg/logtest"
)

// direct leads to a server without a network, so that requests can be made in fake time.
type direct struct{ server *server }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	w := &directAnswer{PipeWriter: writer, header: http.Header{}, status: make(chan int, 1)}
	go func() {
		d.server.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		_ = writer.Close()
	}()
	return &http.Response{StatusCode: <-w.status, Header: w.header, Body: reader, Request: r}, nil
}

// directAnswer is the http.ResponseWriter of one request.
type directAnswer struct {
	*io.PipeWriter

	header http.Header
	status chan int
	begun  bool
}

func (a *directAnswer) Header() http.Header { return a.header }

func (a *directAnswer) WriteHeader(status int) {
	if !a.begun {
		a.begun = true
		a.status <- status
	}
}

func (a *directAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.PipeWriter.Write(b)
}

// A controller, such as one that prunes, deletes the Secret each time that it sees it.
func TestSecretThatIsDeletedEachTimeIsCreatedWithPauses(t *testing.T) {
	t.Parallel()
	s := newServer(t) // outside of fake time: it listens
	log, lines := logtest.New()
	synctest.Test(t, func(t *testing.T) {
		k, err := keyring.New(keyring.Options{
			Config: &rest.Config{Host: "http://api.example.com"}, HTTPClient: &http.Client{Transport: direct{s}},
			Namespace: namespace, Name: name, Random: endless(1), Log: log,
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Start(ctx) }()
		look := 100 * time.Millisecond
		pass := func(d time.Duration, deletes bool) {
			for end := time.Now().Add(d); time.Now().Before(end); <-time.After(look) {
				synctest.Wait()
				if deletes && s.stored() != nil {
					s.remove()
				}
			}
		}
		pass(10*time.Second, true)
		assert.InDelta(t, 21, s.count("post"), 1, "one that is deleted by accident is created again at once")
		look = time.Second
		pass(10*time.Minute, true)
		assert.InDelta(t, 21+60, s.count("post"), 2, "every 10 s")
		const fight = "the Secret of the digest key is deleted each time that it is created"
		assert.Equal(t, 1, lines.Count(fight))
		pass(time.Hour, true)
		assert.Equal(t, 2, lines.Count(fight), "once an hour")
		pass(10*time.Second, false)
		require.NotNil(t, s.stored())
		assert.Equal(t, map[string][]byte{"0001": key(1)}, s.stored().Data)
		stop()
		require.NoError(t, <-done)
	})
}
