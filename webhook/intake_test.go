package webhook_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/unraced"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// source is a body that goes on until it blocks or ends as the test wants.
type source struct {
	sent, most int
	then       func() error
}

func (s *source) Read(p []byte) (int, error) {
	if s.sent >= s.most {
		return 0, s.then()
	}
	n := min(len(p), s.most-s.sent)
	if s.sent == 0 {
		p[0] = '{' // and then whatever is in p
	}
	s.sent += n
	return n, nil
}

// codeOf returns the code within an answer.
func codeOf(t *testing.T, recorder *httptest.ResponseRecorder) int {
	t.Helper()
	return int(answerOf(t, recorder).Result.Code)
}

func send(handler http.Handler, from string, body io.Reader) *httptest.ResponseRecorder {
	return sendRequest(handler, from, httptest.NewRequest(http.MethodPost, webhook.Path, body))
}

// sendSized sends a body that says its length; -1 says none.
func sendSized(handler http.Handler, from string, body io.Reader, length int64) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, webhook.Path, body)
	r.ContentLength = length
	return sendRequest(handler, from, r)
}

func sendRequest(handler http.Handler, from string, r *http.Request) *httptest.ResponseRecorder {
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = from + ":12345"
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return recorder
}

// A caller that sends large bodies slowly does not fill the memory, and has no more than its share.
func TestSlowLargeBodiesDelayOnlyTheirCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged atomic.Int64
		s := newHandler(t, newWorld(t), hastily, funcr.New(func(_, args string) {
			if strings.Contains(args, "too many requests at the same time") {
				logged.Add(1)
			}
		}, funcr.Options{}))
		stop := make(chan struct{})
		begun := make([]*source, 20)
		answers := make(chan *httptest.ResponseRecorder, len(begun))
		for i := range begun {
			begun[i] = &source{most: 3 << 20, then: func() error { <-stop; return io.ErrUnexpectedEOF }}
			go func() { answers <- send(s.handler, "10.0.0.1", begun[i]) }()
		}
		synctest.Wait()
		received := 0
		for _, b := range begun {
			received += b.sent
		}
		assert.LessOrEqual(t, received, 3<<20+19*(512<<10), "one is read on, since its length is not known")

		assert.Equal(t, http.StatusOK, codeOf(t, send(s.handler, "10.0.0.2", bytes.NewReader(large("shop", 600<<10)))))
		for range len(begun) - 1 {
			assert.Contains(t, (<-answers).Body.String(), "too many requests", "they have waited until the deadline")
		}
		close(stop)
		assert.Contains(t, (<-answers).Body.String(), "unexpected EOF")
		assert.Equal(t, 19, decisions(t, s, "none", "busy"))
		assert.Equal(t, 1, decisions(t, s, "none", "malformed"))
		assert.Equal(t, int64(10), logged.Load(), "the first ones are logged")
		again := &source{most: 4 << 20, then: func() error { return io.EOF }}
		assert.Contains(t, send(s.handler, "10.0.0.1", again).Body.String(), "invalid character", "what was taken is given back")
	})
}

// A caller that sends many bodies of the usual size and never their ends does not fill the memory, and others are answered at once.
func TestManySlowSmallBodiesAreBounded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		size    int
		length  int64
		senders int
	}{
		"large part of the small ones": {500 << 10, 500 << 10, 1_500},
		"of unknown length":            {500 << 10, -1, 1_500},
		"typical":                      {20 << 10, 20 << 10, 3_000},
		"tiny":                         {10 << 10, 10 << 10, 3_000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newHandler(t, newWorld(t), hastily, logr.Discard())
				stop := make(chan struct{})
				begun := make([]*source, tt.senders)
				var running sync.WaitGroup
				for i := range begun {
					begun[i] = &source{most: tt.size, then: func() error { <-stop; return io.ErrUnexpectedEOF }}
					running.Go(func() {
						sendSized(s.handler, "10.0.0.1", begun[i], tt.length)
						begun[i].sent = 0 // given back
					})
				}
				synctest.Wait()
				kept := 0
				for _, b := range begun {
					kept += b.sent
				}
				assert.LessOrEqual(t, kept, 28<<20, "all bodies of one caller")
				assert.Positive(t, decisions(t, s, "none", "busy"), "a caller that has too many waiting is refused at once")

				began := time.Now()
				for _, size := range []int{0, 50 << 10, 400 << 10} {
					assert.Equal(t, http.StatusOK, codeOf(t, send(s.handler, "10.0.0.2", bytes.NewReader(large("shop", size)))))
				}
				assert.Zero(t, time.Since(began), "another caller does not wait")
				time.Sleep(3 * time.Second) //nolint:forbidigo // the time is fake: those that wait give up
				close(stop)
				running.Wait()
				assert.Equal(t, http.StatusOK, codeOf(t, send(s.handler, "10.0.0.1", bytes.NewReader(large("shop", 50<<10)))), "what was taken is given back")
			})
		})
	}
}

// timed is a connection on which reading ends at a deadline, like that of an http.Server.
type timed struct {
	*httptest.ResponseRecorder
	ends chan time.Time
}

func (c timed) SetReadDeadline(at time.Time) error {
	c.ends <- at
	return nil
}

// Two callers that use up all between them hold it no longer than their reviews could be decided: then it is the turn of a third one.
func TestCountedBodyIsReadUntilItsDecisionWouldBeTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newHandler(t, newWorld(t), hastily, logr.Discard())
		var running sync.WaitGroup
		for i := range 600 {
			running.Go(func() {
				c := timed{httptest.NewRecorder(), make(chan time.Time, 10)}
				r := httptest.NewRequest(http.MethodPost, webhook.Path, &source{most: 100 << 10, then: func() error {
					time.Sleep(time.Until(<-c.ends)) //nolint:forbidigo // the time is fake
					return os.ErrDeadlineExceeded
				}})
				r.Header.Set("Content-Type", "application/json")
				r.RemoteAddr, r.ContentLength = fmt.Sprintf("10.0.0.%d:1", i%2), 200<<10
				s.handler.ServeHTTP(c, r)
			})
		}
		synctest.Wait()
		time.Sleep(time.Second) //nolint:forbidigo // the time is fake
		body := large("shop", 400<<10)
		began := time.Now()
		assert.Equal(t, http.StatusOK, codeOf(t, sendSized(s.handler, "10.0.0.3", bytes.NewReader(body), int64(len(body)))))
		assert.Equal(t, time.Second, time.Since(began))
		running.Wait()
	})
}

// As many reviews as the API server sends at a time wait for nothing, whatever it sends slowly besides.
func TestReviewsOfTheUsualSizeDoNotWaitForLargeBodies(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newHandler(t, newWorld(t), hastily, logr.Discard())
		stop := make(chan struct{})
		var running sync.WaitGroup
		for range 20 {
			body := &source{most: 3 << 20, then: func() error { <-stop; return io.ErrUnexpectedEOF }}
			running.Go(func() { sendSized(s.handler, "10.0.0.1", body, 3<<20) })
		}
		for range 400 {
			body := &source{most: 50 << 10, then: func() error { <-stop; return io.ErrUnexpectedEOF }}
			running.Go(func() { sendSized(s.handler, "10.0.0.1", body, 50<<10) })
		}
		synctest.Wait()
		began := time.Now()
		body := large("shop", 50<<10)
		assert.Equal(t, http.StatusOK, codeOf(t, sendSized(s.handler, "10.0.0.1", bytes.NewReader(body), int64(len(body)))))
		assert.Zero(t, time.Since(began))
		close(stop)
		running.Wait()
	})
}

// What a large body counts is given back with the answer, and is its length where that is known.
func TestLargeBodiesCountTheirLength(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newHandler(t, newWorld(t), hastily, logr.Discard())
		for range 2 {
			unknown := io.MultiReader(bytes.NewReader(large("shop", 600<<10)))
			assert.Equal(t, http.StatusOK, codeOf(t, send(s.handler, "10.0.0.1", unknown)))
		}
		stop := make(chan struct{})
		var running sync.WaitGroup
		begun := make([]*source, 5)
		for i := range begun {
			begun[i] = &source{most: 2 << 20, then: func() error { <-stop; return io.ErrUnexpectedEOF }}
			running.Go(func() { sendSized(s.handler, "192.0.2.1", begun[i], 3<<20) })
		}
		synctest.Wait()
		readOn := 0
		for _, b := range begun {
			if b.sent == b.most {
				readOn++
			}
		}
		assert.Equal(t, 3, readOn, "10.5 MiB of 3 MiB each")
		close(stop)
		running.Wait()
	})
}

func TestInvalidBodiesAreRefused(t *testing.T) {
	t.Parallel()
	cut := errors.New("connection reset")
	tests := map[string]struct {
		body io.Reader
		code int
		text string
	}{
		"endless":             {&source{most: 1 << 40}, http.StatusRequestEntityTooLarge, "too large; limit is 7340032 bytes"},
		"cut off early":       {&source{most: 100, then: func() error { return cut }}, http.StatusBadRequest, "connection reset"},
		"cut off late":        {&source{most: 1 << 20, then: func() error { return cut }}, http.StatusBadRequest, "connection reset"},
		"noise":               {&source{most: 1 << 20, then: func() error { return io.EOF }}, http.StatusBadRequest, "invalid character"},
		"nested, no review":   {strings.NewReader(`{"request":` + strings.Repeat("[", 3<<20)), http.StatusBadRequest, "depth"},
		"nested in a review":  {strings.NewReader(nested(10_000)), http.StatusBadRequest, "depth"},
		"as deep as it may":   {strings.NewReader(nested(9_900)), http.StatusOK, "config-record"},
		"many small elements": {strings.NewReader(review(`"operation":"CREATE","object":{"x":[` + strings.Repeat(`{},`, 1<<17) + `{}]}`)), http.StatusOK, "allowed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHandler(t, newWorld(t), nil, logr.Discard())
			recorder := send(s.handler, "10.0.0.1", tt.body)
			assert.Equal(t, tt.code, codeOf(t, recorder))
			text := recorder.Body.String()
			if tt.code == http.StatusOK {
				text += string(responseOf(t, recorder).Patch)
			}
			assert.Contains(t, text, tt.text)
			assert.Less(t, recorder.Body.Len(), 4<<10, "an answer repeats nothing of the body")
			assert.Zero(t, decisions(t, s, "none", "panicked"))
		})
	}
}

// nested returns a review of an object with so many lists in each other.
func nested(depth int) string {
	return review(fmt.Sprintf(`"operation":"CREATE","object":{"metadata":{"annotations":{"pod-reloader.cs.sap.com/configmaps":"app"}},`+
		`"spec":{"template":{"x":%s%s}}}`, strings.Repeat("[", depth), strings.Repeat("]", depth)))
}
