package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/go-logr/logr"
)

// Verbosity levels, of slog; logr knows them as V(1) and V(2).
const (
	levelDebug = slog.Level(-1)
	levelTrace = slog.Level(-2)
)

// newLogger gives the logger a warn level, which logr lacks: sinks that know
// slog (zap, slog itself, ktesting) log a warning as one, others at V(0). The
// zero logr.Logger discards everything.
func newLogger(logger logr.Logger) *slog.Logger {
	return slog.New(logr.ToSlogHandler(logger))
}

// guard runs a caller's function, so that neither its error nor its panic ends
// the goroutine that serves the watcher. The error of the context, after its
// end, is no failure.
func guard(ctx context.Context, log *slog.Logger, name string, call func() error) {
	protect(log, name, func() {
		err := call()
		switch {
		case err == nil:
		case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
			log.Log(ctx, levelDebug, "callback ended with its context", "callback", name, "error", err)
		default:
			log.Error("callback failed; the watcher continues", "callback", name, "error", err)
		}
	})
}

// protect is guard for a function without an error.
func protect(log *slog.Logger, name string, call func()) {
	defer func() {
		if crash := recover(); crash != nil {
			log.Error("callback panicked; the watcher continues",
				"callback", name, "panic", fmt.Sprint(crash), "stack", string(debug.Stack()))
		}
	}()
	call()
}

// discardClientLogs is the context that client-go logs into: its remarks about errors that
// the watcher reports itself are for debugging. It is for client-go alone: the
// callbacks get the context of Start, with the logger of their program.
func discardClientLogs(ctx context.Context, logger logr.Logger) context.Context {
	return logr.NewContext(ctx, logger.V(1))
}
