package webhook_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/webhook"
)

// large returns a review of a Deployment with as many bytes of other annotations, or more.
func large(namespace string, size int) []byte {
	body := review(`"operation":"CREATE","object":{"metadata":{"annotations":{"pod-reloader.cs.sap.com/configmaps":"app","note":"` +
		strings.Repeat("x", size) + `"}},"spec":{"template":{}}}`)
	return []byte(strings.Replace(body, `"namespace":"shop"`, `"namespace":"`+namespace+`"`, 1))
}

// hastily leaves the deadline at its default, which a stalled machine would exceed: it is for fake time.
func hastily(o *webhook.Options) { o.Deadline = 0 }

// The reviews of one namespace wait for reads. Those beyond its share wait before they are decoded, and others do not wait.
func TestLargeReviewsDelayOnlyTheirNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hangs := make(chan struct{})
		var inFlight atomic.Int64
		w.before = func(ctx context.Context, namespace string) {
			if namespace == "big" {
				inFlight.Add(1)
				select {
				case <-hangs:
				case <-ctx.Done():
				}
			}
		}
		s := newHandler(t, w, hastily, logr.Discard())
		const size = 300 << 10
		answers := make(chan *httptest.ResponseRecorder, 26)
		for range cap(answers) {
			go func() { answers <- post(s.handler, large("big", size)) }()
		}
		synctest.Wait()
		assert.Equal(t, int64(20), inFlight.Load(), "6 MiB of 300 KiB each")
		for range 2 {
			response := responseOf(t, post(s.handler, large("small", size)))
			assert.Contains(t, string(response.Patch), "config-hash")
		}
		assert.Equal(t, 2, decisions(t, s, "create", "stamped"))

		began := time.Now()
		for range cap(answers) {
			response := responseOf(t, <-answers)
			assert.True(t, response.Allowed, "a write passes whatever happens here")
			require.Len(t, response.Warnings, 1)
			assert.Contains(t, response.Warnings[0], "within 2s")
		}
		assert.Equal(t, 2*time.Second, time.Since(began), "each has the same deadline, whatever it waited for")
		// At the deadline some may begin in the place of others, to no avail.
		unread, busy := decisions(t, s, "create", "unread"), decisions(t, s, "none", "busy")
		assert.GreaterOrEqual(t, unread, 20)
		assert.Positive(t, busy)
		assert.Equal(t, cap(answers), unread+busy)

		close(hangs)
		responseOf(t, post(s.handler, large("big", size)))
		assert.Equal(t, 3, decisions(t, s, "create", "stamped"), "what was taken is given back")
	})
}

// An API server serves all namespaces from one address. The large reviews of one namespace take three quarters of the budget of that
// address, those that wait included, so that those of others are received.
func TestReviewsOfOneNamespaceLeaveAPartOfAnAddress(t *testing.T) {
	t.Parallel()
	// A large body counts by the length that its header says, before it is read.
	const text = 17 << 10
	for name, tt := range map[string]struct{ size, text, parts, sent, received int }{
		"an eighth of 12 MiB, of 50 KiB each, is decided or waits": {50 << 10, 50 << 10, 8, 34, 30},
		"of 600 KiB, 8 are decided and 4 wait":                     {600 << 10, text, 1, 16, 12},
		"of 1,000 KiB, 5 are decided and 2 wait":                   {1_000 << 10, text, 1, 10, 7},
		"of 3,000 KiB, one is decided and one waits":               {3_000 << 10, text, 1, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.before = func(ctx context.Context, namespace string) {
					if namespace == "big" {
						<-ctx.Done()
					}
				}
				s := newHandler(t, w, hastily, logr.Discard())
				s.handler.Divide(tt.parts)
				send := func(namespace string, size int) *httptest.ResponseRecorder {
					return sendSized(s.handler, "10.0.0.1", bytes.NewReader(large(namespace, tt.text)), int64(size))
				}
				answers := make(chan *httptest.ResponseRecorder, tt.sent)
				for range cap(answers) {
					go func() { answers <- send("big", tt.size) }()
				}
				synctest.Wait()
				require.Len(t, answers, cap(answers)-tt.received)
				for range len(answers) {
					response := responseOf(t, <-answers)
					assert.True(t, response.Allowed, "a write passes while there are too many requests")
					assert.Equal(t, []string{"pod-reloader could not check this write: too many requests at the same time; it retries by itself"}, response.Warnings)
				}
				began := time.Now()
				response := responseOf(t, send("small", min(tt.size, 1_000<<10)))
				assert.Contains(t, string(response.Patch), "config-hash")
				assert.Equal(t, began, time.Now(), "it does not wait")
				for range tt.received {
					responseOf(t, <-answers)
				}
				response = responseOf(t, send("big", tt.size))
				assert.NotContains(t, response.Warnings[0], "too many requests", "what was taken is given back")
			})
		})
	}
}

// Reviews of the usual size do not wait, however many there are.
func TestSmallReviewsDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var inFlight atomic.Int64
		w.before = func(ctx context.Context, _ string) {
			inFlight.Add(1)
			<-ctx.Done()
		}
		s := newHandler(t, w, hastily, logr.Discard())
		var running sync.WaitGroup
		for range 200 {
			running.Go(func() { post(s.handler, large("shop", 10<<10)) })
		}
		synctest.Wait()
		assert.Equal(t, int64(200), inFlight.Load())
		running.Wait()
	})
}
