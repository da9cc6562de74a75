package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
)

// worker does jobs, one after the other.
type worker interface {
	// do returns a crashError if the worker has ended with the job.
	do(j job) (outcome, error)
	// end returns how much processor time the worker took.
	end() time.Duration
}

// lane runs histories one after the other, in a worker that is replaced after a crash.
type lane struct {
	hunt   *hunt
	worker worker
}

// do starts a worker if there is none.
func (l *lane) do(ctx context.Context, j job) (outcome, error) {
	if l.worker == nil {
		w, err := l.hunt.start(ctx)
		if err != nil {
			return outcome{}, err
		}
		l.worker = w
	}
	o, err := l.worker.do(j)
	if err != nil {
		l.end()
	}
	return o, err
}

// end lets the worker end and counts its processor time.
func (l *lane) end() {
	if l.worker == nil {
		return
	}
	took := l.worker.end()
	l.worker = nil
	l.hunt.mu.Lock()
	defer l.hunt.mu.Unlock()
	l.hunt.sums.processor += took
}

const (
	// shrinkFor is how much real time may be spent on making a history shorter, so that a hunt ends in time.
	shrinkFor = 40 * time.Second
	// attemptLimit and stepAttemptLimit are how long an attempt at a shorter history that hangs may take: some ten times what a
	// history takes that does not.
	attemptLimit, stepAttemptLimit = 10 * time.Second, 100 * time.Millisecond
)

// shorten returns a shorter history that breaks a law in the same way, or else the whole one.
func (l *lane) shorten(ctx context.Context, whole history.History, v oracle.Violation) history.History {
	if l.hunt.options.Shrink == 0 {
		return whole
	}
	l.hunt.print("  making it shorter …\n")
	if v.Signature == crashed || v.Signature == hung {
		return l.shortenCrash(ctx, whole, v.Signature)
	}
	o, err := l.do(ctx, job{History: whole, Shrink: l.hunt.options.Shrink, ShrinkFor: shrinkFor, Want: v.Signature})
	if err != nil || o.Short == nil { // the repeat does not fail, or not in this way
		return whole
	}
	return *o.Short
}

// shortenCrash runs each attempt in a worker of its own, so that none meets what another has left.
func (l *lane) shortenCrash(ctx context.Context, whole history.History, signature string) history.History {
	until := time.Now().Add(shrinkFor)
	text := whole.About
	short := history.Shrink(whole, func(attempt history.History) bool {
		if ctx.Err() != nil || time.Now().After(until) || !knowsGraph(attempt.Setup) {
			return false
		}
		l.end()
		_, err := l.do(ctx, job{History: attempt, limit: attemptLimit + stepAttemptLimit*time.Duration(len(attempt.Steps))})
		var crash *crashError
		if !errors.As(err, &crash) || ctx.Err() != nil || crash.signature() != signature {
			return false
		}
		text = about(crash.violation())
		return true
	}, l.hunt.options.Shrink)
	short.About = text
	return short
}

// failed returns a history as it is kept: with the decisions of the run that broke a law, and the way in which it broke it.
func failed(h history.History, v oracle.Violation, trace []string) history.History {
	h.Trace, h.Law, h.About = trace, v.Signature, about(v)
	return h
}

// about says what a violation is about.
func about(v oracle.Violation) string {
	if v.Subject == "" {
		return v.Text
	}
	return fmt.Sprintf("%s: %s", v.Subject, v.Text)
}
