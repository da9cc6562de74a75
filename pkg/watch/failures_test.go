package watch

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// An error may come between the token of the one before it and the look at
// what there is to report.
func TestEachErrorIsReportedOnce(t *testing.T) {
	t.Parallel()
	first, second, third := errors.New("first"), errors.New("second"), errors.New("third")
	reported := make(chan error, 10)
	f := newFailures(slog.New(slog.DiscardHandler), func(_ context.Context, err error) { reported <- err })
	f.record(t.Context(), first)
	f.mu.Lock()
	go f.report(t.Context())
	for len(f.wake) > 0 {
		runtime.Gosched()
	}
	f.err, f.unreported = second, second // as record does
	f.wake <- struct{}{}
	f.mu.Unlock()

	assert.Equal(t, second, <-reported, "the latest one")
	for len(f.wake) > 0 {
		runtime.Gosched()
	}
	f.record(t.Context(), third)
	assert.Equal(t, third, <-reported, "and that once")
}
