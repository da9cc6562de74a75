// Package largeread bounds how many large responses of the API server are in memory at a time, for clients that read and decode a
// response as a whole: decoded, it can take 25 times the memory of its text.
//
// A Limit opens a scope for the reads whose objects are in memory together, and Admit or Refuse chooses the reads of a scope that the
// limit is for. Wrap is the transport that enforces it. It knows nothing about what is read.
package largeread

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
)

// Size is the size in bytes beyond which a response is large.
const Size = 256 << 10

var (
	// ErrLarge says that a response is large, where Refuse allows none.
	ErrLarge = fmt.Errorf("the response has more than %d bytes", Size)
	// ErrWaiting says that a large response had no turn in time, or that the context has ended before all of it was read then: the API
	// server has answered.
	ErrWaiting = errors.New("waited for the turn of a large object, or for the rest of it")
)

// Limit bounds the scopes that have large responses. It is safe for concurrent use.
type Limit struct{ limit *fairlimit.Limit }

// New returns a Limit of so many scopes with large responses, of which one tenant can have a share.
func New(total, share int) Limit { return Limit{fairlimit.New(total, share)} }

// Begin returns a context whose large responses wait for their turn, once for all of them. The caller calls done once, when their objects
// are not in memory any more.
func (l Limit) Begin(ctx context.Context, tenant string) (scoped context.Context, done func()) {
	s := &scope{limit: l.limit, tenant: tenant, release: func() {}}
	return context.WithValue(ctx, scopeKey{}, s), s.end
}

// scope is what Begin has opened.
type scope struct {
	limit  *fairlimit.Limit
	tenant string

	mu      sync.Mutex
	has     bool
	release func()
}

// wait waits for the turn of the scope, unless it has it.
func (s *scope) wait(ctx context.Context) error {
	return s.take(func() (func(), error) { return s.limit.Acquire(ctx, s.tenant, 1) })
}

// try is wait for a scope that has its turn at once, or not at all.
func (s *scope) try() error {
	return s.take(func() (func(), error) { return s.limit.TryAcquire(s.tenant, 1) })
}

func (s *scope) take(acquire func() (release func(), err error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has {
		return nil
	}
	release, err := acquire()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWaiting, err)
	}
	s.has, s.release = true, release
	return nil
}

func (s *scope) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

type (
	scopeKey struct{}
	admitKey struct{}
	pagesKey struct{}
)

// Admit returns a context for reads whose large responses wait for their turn. Without a scope it changes nothing.
func Admit(ctx context.Context) context.Context { return admit(ctx, (*scope).wait) }

// AdmitFew is Admit for large responses of which only as many wait at a time as waiting allows of the tenant, and in total: where no more
// may, one that has no turn at once is an error, ErrWaiting.
func AdmitFew(ctx context.Context, waiting *fairlimit.Limit) context.Context {
	return admit(ctx, func(s *scope, ctx context.Context) error {
		err := s.try()
		if err == nil {
			return nil
		}
		end, full := waiting.TryAcquire(s.tenant, 1)
		if full != nil {
			return err
		}
		defer end()
		return s.wait(ctx)
	})
}

func admit(ctx context.Context, take func(*scope, context.Context) error) context.Context {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, admitKey{}, func(ctx context.Context) error { return take(s, ctx) })
}

// Refuse returns a context for reads whose large responses are an error, ErrLarge.
func Refuse(ctx context.Context) context.Context {
	return context.WithValue(ctx, admitKey{}, func(context.Context) error { return ErrLarge })
}

// RefusePages is Refuse for the lists of several objects among the requests of a watch: those with a limit of more than one. Its others are
// read at once.
func RefusePages(ctx context.Context) context.Context {
	return context.WithValue(ctx, pagesKey{}, true)
}

// Wrap is for rest.Config.Wrap.
func Wrap(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go find the transport below.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends a request. A large response is read no further before it is admitted.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	admit, limited := admission(r)
	if !limited {
		return t.next.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	head, err := io.ReadAll(io.LimitReader(response.Body, Size+1))
	large := len(head) > Size
	if err == nil && large {
		err = admit(r.Context())
	}
	if err != nil {
		cancel() // for the transports below, the caller has given up the request
		_ = response.Body.Close()
		return nil, err
	}
	rest := io.Reader(response.Body)
	if large {
		rest = tail{rest, r.Context()}
	}
	response.Body = body{io.MultiReader(bytes.NewReader(head), rest), response.Body, cancel}
	return response, nil
}

// admission returns what a large response to a request needs, if its context limits it.
func admission(r *http.Request) (admit func(context.Context) error, limited bool) {
	ctx := r.Context()
	if ctx.Value(pagesKey{}) != nil {
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil || limit <= 1 {
			return nil, false
		}
		ctx = Refuse(ctx)
	}
	admit, limited = ctx.Value(admitKey{}).(func(context.Context) error)
	return admit, limited
}

// tail is the rest of a large response.
type tail struct {
	io.Reader
	ctx context.Context //nolint:containedctx // a response body has no context of its own
}

func (t tail) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && t.ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrWaiting, err)
	}
	return n, err
}

// body is a response of which the head was read.
type body struct {
	io.Reader
	io.Closer
	cancel context.CancelFunc
}

func (b body) Close() error {
	defer b.cancel()
	return b.Closer.Close()
}
