package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
	"github.com/pod-reloader/pod-reloader/pkg/serve"
)

// part runs until its context ends or it is made to fail, and remembers when it ended.
type part struct {
	fail  chan error
	ended chan time.Time
}

func newPart() *part { return &part{fail: make(chan error, 1), ended: make(chan time.Time, 1)} }

func (p *part) Start(ctx context.Context) error {
	defer func() { p.ended <- time.Now() }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.fail:
		return err
	}
}

func newLifecycle(loop, server starter) *lifecycle {
	return &lifecycle{
		loop: loop, serving: []starter{server}, probes: &probes{}, drain: &serve.Drain{}, grace: 10 * time.Second, log: logr.Discard(),
	}
}

func TestSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loop, server := newPart(), newPart()
		l := newLifecycle(loop, server)
		ctx, signal := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.run(ctx) }()
		synctest.Wait()
		assert.NoError(t, l.probes.running())

		signaled := time.Now()
		signal()
		synctest.Wait()
		assert.Error(t, l.probes.running(), "not ready at once")
		assert.True(t, l.drain.On.Load(), "the connections are drained")
		assert.Equal(t, signaled, <-loop.ended, "the loop ends at once, so that another leads")
		assert.Empty(t, server.ended, "admission goes on")

		require.NoError(t, <-done, "a signal is no failure")
		assert.Equal(t, l.grace, (<-server.ended).Sub(signaled), "until the endpoint has drained")
	})
}

// tardy is a loop that needs a while to end.
type tardy struct{ *part }

func (l tardy) Start(ctx context.Context) error {
	<-ctx.Done()
	<-time.After(3 * time.Second)
	return l.part.Start(ctx)
}

// What the loop uses, such as the delivery of alerts, ends after it.
func TestLoopEndsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loop, server := newPart(), newPart()
		l := newLifecycle(tardy{loop}, server)
		l.grace = 0
		ctx, signal := context.WithCancel(t.Context())
		signal()
		require.NoError(t, l.run(ctx))
		assert.False(t, (<-server.ended).Before(<-loop.ended), "the server ends after the loop")
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	tests := map[string]struct {
		fail func(loop, server *part)
		want string
		wait time.Duration
		why  string
	}{
		"manager fails":  {func(loop, _ *part) { loop.fail <- boom }, "run the manager: boom", 10 * time.Second, "admission is served on while another replica takes over"},
		"manager leaves": {func(loop, _ *part) { loop.fail <- nil }, "stopped by itself", 10 * time.Second, "nothing does the loop's work"},
		"server fails":   {func(_, server *part) { server.fail <- boom }, "boom", 0, "nothing is left to drain"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				loop, server := newPart(), newPart()
				l := newLifecycle(loop, server)
				started := time.Now()
				tt.fail(loop, server)
				err := l.run(t.Context())
				assert.ErrorContains(t, err, tt.want)
				assert.Equal(t, tt.wait, time.Since(started), tt.why)
				assert.Error(t, l.probes.running())
			})
		})
	}
}

func TestDirectModeDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLifecycle(newPart(), newPart())
		l.grace = 0
		ctx, signal := context.WithCancel(t.Context())
		signal()
		started := time.Now()
		require.NoError(t, l.run(ctx))
		assert.Zero(t, time.Since(started), "without a webhook there is nothing to drain")
	})
}

func TestProbes(t *testing.T) {
	t.Parallel()
	var failure error
	log, lines := logtest.New()
	p := &probes{
		conditions: []condition{{"digest-key", func() error { return failure }}},
		log:        log,
	}
	handler := p.handler()
	ask := func(path string) (int, string) {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		return recorder.Code, recorder.Body.String()
	}
	code, text := ask("/readyz")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+] digest-key\n[+] running\n", text)

	failure = errors.New("no key yet")
	code, text = ask("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "[-] digest-key: no key yet", "it says what is missing")
	ask("/readyz")
	require.Len(t, lines(), 2, "a change is logged once, not at every probe")
	assert.Contains(t, lines()[1], "no key yet")
	code, _ = ask("/healthz")
	assert.Equal(t, http.StatusOK, code, "no reason for a restart")

	failure = nil
	p.stopping.Store(true)
	code, _ = ask("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code, "the Service must drop a replica that stops")
	code, _ = ask("/healthz")
	assert.Equal(t, http.StatusOK, code)
}
