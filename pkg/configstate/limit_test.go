package configstate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// names returns so many Refs that do not exist.
func names(n int) []reference.Ref {
	refs := make([]reference.Ref, n)
	for i := range refs {
		refs[i] = cm(fmt.Sprintf("c%04d", i))
	}
	return refs
}

// hanging makes the server hold all reads in some namespaces until the test ends, and counts them.
func hanging(t *testing.T, s *server, namespaces ...string) *atomic.Int64 {
	t.Helper()
	var held atomic.Int64
	release := make(chan struct{})
	s.holding(func(r *http.Request) {
		for _, namespace := range namespaces {
			if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"+namespace+"/") {
				held.Add(1)
				<-release
			}
		}
	})
	t.Cleanup(func() { close(release) })
	return &held
}

type readFunc func(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error)

// inBackground makes reads that end with the test.
func inBackground(t *testing.T, read readFunc, namespace string, refs []reference.Ref) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = read(ctx, namespace, refs)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestNamespaceWhoseReadsHangHoldsUpItselfOnly(t *testing.T) {
	t.Parallel()
	for name, reader := range readers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			held := hanging(t, s, "big")
			f := newFixture(t, s, nil)
			for i := range 100 {
				inBackground(t, reader(f), "big", names(1_000)[i*10:][:10])
			}
			require.Eventually(t, func() bool { return f.Waiting() == 1_000-24 && held.Load() == 24 }, wait, time.Millisecond,
				"three quarters of a half of the connections")

			for range 10 {
				states, err := reader(f)(t.Context(), "small", names(5))
				require.NoError(t, err)
				assert.Len(t, states, 5)
			}
			assert.Equal(t, 1_000-24, f.Waiting())
		})
	}
}

// readers are the ways to read live.
func readers() map[string]func(*fixture) readFunc {
	return map[string]func(*fixture) readFunc{
		"ReadLive":      func(f *fixture) readFunc { return f.ReadLive },
		"ReadIfChanged": func(f *fixture) readFunc { return f.ReadIfChanged },
		"Admission":     func(f *fixture) readFunc { return f.Admission().ReadLive },
	}
}

// Two namespaces use up what one part of the program has; the other part has its own.
func TestWebhookAndLoopDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ busy, free []string }{
		"Webhook": {busy: []string{"Admission"}, free: []string{"ReadLive", "ReadIfChanged"}},
		"Loop":    {busy: []string{"ReadLive", "ReadIfChanged"}, free: []string{"Admission"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			held := hanging(t, s, "big", "bigger")
			f := newFixture(t, s, nil)
			for _, by := range test.busy {
				inBackground(t, readers()[by](f), "big", names(40))
				inBackground(t, readers()[by](f), "bigger", names(40))
			}
			// A call has 32 reads under way or waiting.
			waiting := len(test.busy)*2*32 - 32
			require.Eventually(t, func() bool { return held.Load() == 32 && f.Waiting() == waiting }, wait, time.Millisecond)
			for _, by := range test.busy {
				ctx, cancel := context.WithCancel(t.Context())
				failed := make(chan error, 1)
				go func() {
					_, err := readers()[by](f)(ctx, "small", names(1))
					failed <- err
				}()
				require.Eventually(t, func() bool { return f.Waiting() == waiting+1 }, wait, time.Millisecond, by)
				cancel()
				err := <-failed
				require.ErrorContains(t, err, "still queued behind other reads", by)
				require.ErrorIs(t, err, context.Canceled)
				require.Eventually(t, func() bool { return f.Waiting() == waiting }, wait, time.Millisecond, by)
			}
			for _, by := range test.free {
				_, err := readers()[by](f)(t.Context(), "big2", names(5))
				require.NoError(t, err, by)
			}
			assert.Equal(t, int64(32), held.Load())
		})
	}
}

// What waits when its caller goes is never sent.
func TestReadsOfACallerThatHasGoneAreNotSent(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var held atomic.Int64
	release := make(chan struct{})
	s.holding(func(*http.Request) {
		held.Add(1)
		<-release
	})
	f := newFixture(t, s, nil)
	inBackground(t, f.ReadLive, "a", names(24))
	require.Eventually(t, func() bool { return held.Load() == 24 }, wait, time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := f.ReadLive(ctx, "a", names(1_000)[500:])
		gone <- err
	}()
	require.Eventually(t, func() bool { return f.Waiting() > 0 }, wait, time.Millisecond)
	cancel()
	err := <-gone
	assert.Len(t, configstate.ReadErrors(err), 500, "each is reported")
	require.Eventually(t, func() bool { return f.Waiting() == 0 }, wait, time.Millisecond)
	close(release)
	_, err = f.ReadLive(t.Context(), "a", names(1))
	require.NoError(t, err)
	for _, request := range s.seen() {
		assert.Less(t, request, "get /api/v1/namespaces/a/configmaps/c0500")
	}
}
