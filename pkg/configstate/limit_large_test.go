package configstate_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// slow is a connection to the server on which the responses of some namespaces do not come to their end.
type slow struct {
	namespaces []string
	held       *atomic.Int64
	release    chan struct{}
}

func newSlow(namespaces ...string) slow {
	return slow{namespaces: namespaces, held: &atomic.Int64{}, release: make(chan struct{})}
}

// client is for configstate.Options.
func (s slow) client(o *configstate.Options) { o.HTTPClient = &http.Client{Transport: s} }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && slices.Contains(s.namespaces, strings.Split(r.URL.Path, "/")[4]) {
		response.Body = &slowBody{ReadCloser: response.Body, slow: s}
	}
	return response, err
}

type slowBody struct {
	io.ReadCloser
	slow

	read int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.read > 64<<10 {
		b.held.Add(1)
		<-b.release
	}
	n, err := b.ReadCloser.Read(p)
	b.read += n
	return n, err
}

// large stores so many large ConfigMaps in each namespace.
func large(s *server, n int, namespaces ...string) []reference.Ref {
	content := strings.Repeat("x", 200<<10)
	var refs []reference.Ref
	for i := range n {
		refs = append(refs, cm(fmt.Sprintf("c%d", i)))
		for _, namespace := range namespaces {
			s.put(configMap(namespace, refs[i].Name, content))
		}
	}
	return refs
}

func TestLargeObjectsInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	refs := large(s, 20, "big", "other")
	over := newSlow("big")
	f := newFixture(t, s, over.client)
	done := make(chan error, 1)
	go func() {
		_, err := f.ReadLive(t.Context(), "big", refs)
		done <- err
	}()
	require.Eventually(t, func() bool { return over.held.Load() == 3 }, wait, time.Millisecond)
	_, err := f.ReadLive(t.Context(), "other", refs)
	require.NoError(t, err, "large ones of another namespace")
	require.Eventually(t, func() bool { return f.Waiting() == 17 }, wait, time.Millisecond, "the rest waits")
	assert.Equal(t, int64(3), over.held.Load(), "three quarters of those that there are at a time")

	close(over.release)
	require.NoError(t, <-done, "all are read in the end")
}

// Two namespaces use up what one part of the program has for large objects; the other part has its own.
func TestWebhookAndLoopDoNotWaitForLargeObjectsOfEachOther(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ busy, free []string }{
		"Webhook": {busy: []string{"Admission"}, free: []string{"ReadLive", "ReadIfChanged"}},
		"Loop":    {busy: []string{"ReadLive", "ReadIfChanged"}, free: []string{"Admission"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			refs := large(s, 10, "big", "bigger", "small")
			over := newSlow("big", "bigger")
			t.Cleanup(func() { close(over.release) })
			f := newFixture(t, s, over.client)
			for _, by := range tc.busy {
				inBackground(t, readers()[by](f), "big", refs)
				inBackground(t, readers()[by](f), "bigger", refs)
			}
			all := len(tc.busy) * 2 * len(refs)
			require.Eventually(t, func() bool { return over.held.Load() == 4 && f.Waiting() == all-4 }, wait, time.Millisecond)
			for _, by := range tc.free {
				_, err := readers()[by](f)(deadline(t), "small", refs)
				require.NoError(t, err, by)
			}
			assert.Equal(t, int64(4), over.held.Load())
		})
	}
}
