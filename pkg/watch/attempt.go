package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Limits for the server. Without them a server, or a proxy before it, that
// accepts a request and never answers holds a watcher for ever: client-go sets
// no time-out for lists and watches, and HTTP/1.1 connections are not pinged.
const (
	// watchLimit is for the answer to a watch, which comes at once.
	watchLimit = 30 * time.Second
	// listLimit is for the first byte of a list. The API server itself gives up
	// a request after a minute by default.
	listLimit = 2 * time.Minute
	// bodyLimit is for everything else: the body of a list, pauses that the
	// server asks for by Retry-After, and the client's rate limit.
	bodyLimit = 5 * time.Minute
	// repeatLimit is how long a request may be sent again after an answer.
	repeatLimit = time.Minute
	// silence is how long a stream may send nothing. Where the API server sends
	// bookmarks, it sends one about every minute.
	silence = 150 * time.Second
	// unheard is how long a stream sends nothing only if there are no bookmarks,
	// or it is ahead of the server.
	unheard = 90 * time.Second
)

// errRepeat is for an answer of 429 or 5xx with Retry-After, which client-go
// obeys ten times before it returns the error. To client-go, it is a 429: a
// watch is opened again later, without a list.
var errRepeat = apierrors.NewTooManyRequests("the server asks to repeat the request later, again and again", 0)

// attempt is one request, which is given up if it is not answered in time.
type attempt struct {
	ctx    context.Context
	cancel context.CancelCauseFunc // ends the request, and the stream that it has opened

	mu       sync.Mutex
	timer    *time.Timer
	sent     time.Time // for the first time
	ends     time.Time // from the first answer on: of the time for the rest
	awaited  bool      // sent, and not answered since
	answered bool
	repeated bool // after an answer
	finished bool
	lost     error // by which the connection of a watch broke
}

// newAttempt gives the server the limit to begin its answer, from when the
// request first gets a connection, and the rest to end it. Both are for all that
// client-go makes of the request: it repeats one whose connection breaks, or
// whose answer asks for that. Before, the client may hold it back, all but
// watches, until its rate limit allows it: for that it has the rest, too. The
// context is for the client.
func newAttempt(ctx context.Context, rest, limit time.Duration) (context.Context, *attempt) {
	a := &attempt{}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.within(rest, rest)
	return httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { a.send(limit) },
		GotFirstResponseByte: func() { a.answer(rest) },
	}), a
}

// send is called each time the request is to be sent.
func (a *attempt) send(limit time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awaited, a.repeated = true, a.answered
	switch {
	case a.sent.IsZero():
		a.sent = time.Now()
		a.within(limit, limit)
	case a.repeated && !a.finished && time.Since(a.sent) > repeatLimit:
		a.cancel(errRepeat)
	case a.repeated:
		a.within(min(limit, time.Until(a.ends)), limit)
	}
}

// answer is called each time an answer begins.
func (a *attempt) answer(limit time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.answered {
		a.answered, a.ends = true, time.Now().Add(limit)
	}
	a.awaited = false
	a.within(time.Until(a.ends), limit)
}

// within sets the time that is left, of a limit.
func (a *attempt) within(left, limit time.Duration) {
	if a.timer != nil {
		a.timer.Stop()
	}
	if !a.finished {
		a.timer = time.AfterFunc(left, func() { a.giveUp(limit) })
	}
}

func (a *attempt) giveUp(limit time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.finished:
	case a.awaited || !a.answered:
		a.cancel(fmt.Errorf("the server has not answered within %s", limit))
	case a.repeated:
		a.cancel(errRepeat)
	default:
		a.cancel(fmt.Errorf("the server has not answered in full within %s", limit))
	}
}

// finish ends the time limit and returns the request's error, which names the
// limit if that is the reason.
func (a *attempt) finish(err error) error {
	a.mu.Lock()
	a.finished = true
	a.timer.Stop()
	a.mu.Unlock()
	cause := context.Cause(a.ctx)
	switch {
	case cause == nil, errors.Is(err, cause):
		return err
	case err == nil:
		return cause
	default:
		return fmt.Errorf("%w: %w", cause, err)
	}
}

func (a *attempt) lose(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = err
}

// connectionError is the error by which the connection of a watch broke, nil if it did not.
func (a *attempt) connectionError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lost
}
