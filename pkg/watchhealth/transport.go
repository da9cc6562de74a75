package watchhealth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// watchAnswer is how long a watch may wait for the header of its response, which the API server sends at once. As the others, it
	// is shorter than the limits of the clients (30 s in package watch): a request that its caller has given up is no failure here.
	watchAnswer = 20 * time.Second
	// answer is the same for all other requests. The API server ends those after 60 s by itself.
	answer = 70 * time.Second
	// watchSilence is how long a watch may deliver nothing. The API server sends a bookmark about every minute.
	watchSilence = 2 * time.Minute
	// atOnce is how soon a watch has to end to count as one that was only accepted.
	atOnce = time.Second
	// silence is how long the body of another response may pause.
	silence = time.Minute
	// whole is how long all of such a body may be waited for: it may have no end.
	whole = 5 * time.Minute
	// longestRetryAfter is the longest pause that the answer to a failed request may ask for.
	longestRetryAfter = 10 * time.Second
)

// timeout is the error of a request that was given up. It is no network error: client-go would retry those at once.
type timeout struct {
	what  string
	after time.Duration
}

func (t timeout) Error() string { return fmt.Sprintf("%s within %s", t.what, t.after) }

// Wrap is for rest.Config.Wrap.
func (m *Monitor) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{monitor: m, next: next}
}

type transport struct {
	monitor *Monitor
	next    http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends a request and bounds the wait for its answer.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	e := &exchange{monitor: t.monitor, caller: r.Context(), cancel: cancel, began: time.Now()}
	asked, followed := parse(r)
	followed = followed && !isUnwatched(r.Context()) && t.monitor.follows(asked)
	e.request, e.followed, e.postpones = asked, followed && !asked.first, followed && asked.first
	if e.followed {
		t.monitor.begin(e.request)
	}
	limit := answer
	if e.request.watch {
		limit = watchAnswer
	}
	giveUp := time.AfterFunc(limit, func() { cancel(timeout{"the API server did not answer", limit}) })
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if !giveUp.Stop() && err == nil {
		_ = response.Body.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		err = e.fail(ctx, err)
		e.done()
		return nil, err
	}
	e.answered(response.StatusCode)
	limitRetryAfter(r, response)
	response.Body = newBody(ctx, e, response.Body, response.StatusCode)
	return response, nil
}

// limitRetryAfter removes a pause that is too long, and each one of a failed request that the caller repeats. client-go waits for it within
// a request, ten times, and its caller sees neither the failure nor the wait: a proxy could stop a watch for hours, and a write that a
// webhook, or an API server with too many requests, rejects for now would end as one without an answer. Without it the failure is reported,
// and the caller retries with pauses of its own.
func limitRetryAfter(request *http.Request, response *http.Response) {
	const name = "Retry-After"
	seconds, err := strconv.Atoi(response.Header.Get(name))
	if isRetried(request) || err == nil && seconds > int(longestRetryAfter/time.Second) {
		response.Header.Del(name)
	}
}

// exchange is one request with its response.
type exchange struct {
	monitor  *Monitor
	request  request
	followed bool
	// postpones says that a watch does not go on while this request is answered with 429; its other answers say nothing of the watch.
	postpones bool
	caller    context.Context //nolint:containedctx // a response body has no context of its own
	cancel    context.CancelCauseFunc
	began     time.Time
	once      sync.Once
}

// fail records an error in place of an answer, and returns the one that the caller gets.
func (e *exchange) fail(ctx context.Context, err error) error {
	reason := Failed
	if cause := (timeout{}); errors.As(context.Cause(ctx), &cause) {
		reason, err = NoAnswer, cause
	}
	if e.followed && e.caller.Err() == nil {
		e.monitor.failed(e.request, reason, err.Error(), e.began)
	}
	return err
}

// answered records the status of an answer.
func (e *exchange) answered(status int) {
	switch {
	case e.followed:
		e.record(status)
	case e.postpones && status == http.StatusTooManyRequests:
		e.rejected(status)
	}
}

// record records the status of the answer to a request of a watch.
func (e *exchange) record(status int) {
	switch {
	case status == http.StatusGone && e.request.versioned:
		e.monitor.expired(e.request, e.began)
	case status == http.StatusNotFound && !e.request.about.builtIn():
		e.monitor.unserved(e.request)
	case e.request.streaming && lacksStreaming(status): // the client lists instead
	case status >= http.StatusBadRequest:
		e.rejected(status)
	case e.request.watch && !e.request.streaming: // for a streaming list, see listEnd
		e.monitor.opened(e.request)
	}
}

// lacksStreaming reports whether the API server answers a request for a streaming list in this way where it has none.
func lacksStreaming(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
}

// rejected records that the API server has answered with the status of an error.
func (e *exchange) rejected(status int) {
	reason, detail := Failed, fmt.Sprintf("the API server answers %d %s", status, http.StatusText(status))
	switch status {
	case http.StatusUnauthorized:
		reason, detail = Refused, "the API server does not accept the credentials (401)"
	case http.StatusForbidden:
		reason, detail = Refused, "it is forbidden (403): grant get, list and watch"
	}
	e.monitor.failed(e.request, reason, detail, e.began)
}

// done releases what belongs to the request.
func (e *exchange) done() {
	e.once.Do(func() {
		e.cancel(nil)
		if e.followed {
			e.monitor.end(e.request)
		}
	})
}

// body is the body of a response that does not wait for its bytes for ever.
type body struct {
	io.ReadCloser
	exchange *exchange
	ctx      context.Context //nolint:containedctx // as above
	limit    time.Duration
	timer    *time.Timer
	// whole ends a body that has been waited for in all as long as it may be; left is how long that still is.
	whole   *time.Timer
	left    time.Duration
	success bool
	// last is when bytes came last; known is set once some have shown whether the watch works. Only Read has what follows.
	last  time.Time
	known bool
	// head is what a watch has sent first, behind its list: a reader of protobuf takes the four bytes of a length by themselves.
	head []byte
	// listed is when a streaming list was complete.
	listed time.Time
	end    listEnd
	// ended is set once the end was seen.
	ended atomic.Bool
}

func newBody(ctx context.Context, e *exchange, next io.ReadCloser, status int) *body {
	b := &body{
		ReadCloser: next, exchange: e, ctx: ctx, limit: silence, left: whole, last: time.Now(), success: status == http.StatusOK,
	}
	if e.request.watch {
		b.limit, b.left = watchSilence, math.MaxInt64
	}
	b.whole = time.AfterFunc(b.left, func() { e.cancel(timeout{"the answer of the API server did not end", whole}) })
	b.whole.Stop()
	b.timer = time.AfterFunc(b.limit, func() { e.cancel(timeout{"the API server sent nothing", b.limit}) })
	b.timer.Stop()
	return b
}

// Read waits for bytes, but not for ever. The time in which nothing is asked for does not count.
func (b *body) Read(p []byte) (int, error) {
	asked := time.Now()
	b.timer.Reset(b.limit)
	b.whole.Reset(b.left)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	b.whole.Stop()
	b.left -= time.Since(asked)
	if n > 0 {
		b.last = time.Now()
		if !b.known && b.watches() {
			b.received(p[:n])
		}
	}
	if err != nil {
		err = b.over(err)
	}
	return n, err
}

// watches reports whether this is a watch that was opened.
func (b *body) watches() bool { return b.exchange.followed && b.exchange.request.watch && b.success }

// over records the end of a body, and returns the error that the caller gets.
func (b *body) over(err error) error {
	if b.ended.Swap(true) {
		return err
	}
	var late timeout
	cut := errors.As(context.Cause(b.ctx), &late)
	detail := "its list was cut off"
	if cut {
		err, detail = late, detail+": "+late.Error()
	}
	switch {
	case !b.exchange.followed || !b.success || b.exchange.caller.Err() != nil:
	case b.exchange.request.watch && cut:
		b.exchange.monitor.failed(b.exchange.request, Silent, late.Error()+", not even a bookmark", b.last)
		return io.EOF // the reflector goes on with a new watch from here
	case b.exchange.request.watch:
		b.recordEnd()
	case errors.Is(err, io.EOF):
		b.exchange.monitor.listed(b.exchange.request)
	default:
		b.exchange.monitor.failed(b.exchange.request, Incomplete, detail, b.exchange.began)
	}
	return err
}

// received records what a watch sends, a streaming list first.
func (b *body) received(next []byte) {
	switch e := b.exchange; {
	case e.request.streaming && b.listed.IsZero():
		if b.end.in(next) {
			b.listed = time.Now()
			e.monitor.listedBy(e.request)
		}
	case e.request.streaming && len(b.head) == 0 && next[0] != 0 && next[0] != '{':
		// The rest of the bookmark behind the list, which came in parts. An event begins with the length or with a brace.
	default:
		b.head = append(b.head, next[:min(len(next), typeEnd)]...)
		if b.head[0] == 0 && len(b.head) < len("\x00\x00\x00\x00\x0a\x05ERROR") {
			return // the length of an event in protobuf, without its type
		}
		if bytes.Contains(b.head, []byte("ERROR")) {
			b.recordEnd() // the client ends it
		} else {
			e.monitor.delivered(e.request)
		}
		b.known = true
	}
}

// typeEnd is where the type of an event ends at the latest. It comes first, in JSON and, behind the length, in protobuf. An API server
// answers a watch whose version has expired by an event of the type ERROR.
const typeEnd = 24

// recordEnd records whether a watch that has sent nothing, or an error, has ended at once: a streaming one has begun when its list was
// complete.
func (b *body) recordEnd() {
	e, began := b.exchange, b.exchange.began
	if e.request.streaming {
		began = b.listed
	}
	switch {
	case b.known || began.IsZero():
	case time.Since(began) < atOnce:
		e.monitor.accepted(e.request, began)
	default:
		e.monitor.lasted(e.request)
	}
}

// Close ends the exchange. A list of which the client does not want the rest is one that it could not use, if it lists again.
func (b *body) Close() error {
	b.timer.Stop()
	if e := b.exchange; !b.ended.Load() && e.followed && b.success && !e.request.watch && e.caller.Err() == nil {
		e.monitor.listed(e.request)
	}
	err := b.ReadCloser.Close()
	b.exchange.done()
	return err
}
