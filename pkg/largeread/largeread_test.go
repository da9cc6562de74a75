package largeread_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
)

// server answers each request with a body.
type server struct {
	body   io.Reader
	closed int
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: answer{s.body, s}}, nil
}

type answer struct {
	io.Reader
	of *server
}

func (a answer) Close() error {
	a.of.closed++
	return nil
}

// get reads a response of so many bytes.
func get(ctx context.Context, size int) error {
	return read(ctx, &server{body: strings.NewReader(strings.Repeat("x", size))}, size)
}

func read(ctx context.Context, s *server, size int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api/", http.NoBody)
	if err != nil {
		return err
	}
	response, err := largeread.Wrap(s).RoundTrip(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err == nil && string(text) != strings.Repeat("x", size) {
		return errors.New("another text")
	}
	return err
}

func TestLargeResponsesWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := largeread.New(2, 1)
		first, endFirst := limit.Begin(t.Context(), "a")
		require.NoError(t, get(largeread.Admit(first), largeread.Size+1))
		require.NoError(t, get(largeread.Admit(first), largeread.Size+1), "the scope has its turn")

		second, endSecond := limit.Begin(t.Context(), "a")
		require.NoError(t, get(largeread.Admit(second), largeread.Size), "a small one")
		require.NoError(t, get(second, largeread.Size+1), "a read without a limit")
		late, cancel := context.WithTimeout(second, time.Second)
		defer cancel()
		err := get(largeread.Admit(late), largeread.Size+1)
		require.ErrorIs(t, err, largeread.ErrWaiting)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		other, endOther := limit.Begin(t.Context(), "b")
		require.NoError(t, get(largeread.Admit(other), largeread.Size+1), "of another tenant")
		endOther()
		endFirst()
		require.NoError(t, get(largeread.Admit(second), largeread.Size+1))
		endSecond()
	})
}

func TestFewLargeResponsesWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit, waiting := largeread.New(2, 1), fairlimit.New(2, 1)
		try := func(ctx context.Context, size int) error { return get(largeread.AdmitFew(ctx, waiting), size) }
		first, endFirst := limit.Begin(t.Context(), "a")
		require.NoError(t, try(first, largeread.Size+1))
		require.NoError(t, try(first, largeread.Size+1), "the scope has its turn")
		second, endSecond := limit.Begin(t.Context(), "a")
		require.NoError(t, try(second, largeread.Size), "a small one")
		waits := make(chan error)
		go func() { waits <- try(second, largeread.Size+1) }()
		synctest.Wait()
		third, endThird := limit.Begin(t.Context(), "a")
		require.ErrorIs(t, try(third, largeread.Size+1), largeread.ErrWaiting, "one waits")
		other, endOther := limit.Begin(t.Context(), "b")
		require.NoError(t, try(other, largeread.Size+1), "of another tenant")
		endOther()
		endFirst()
		require.NoError(t, <-waits)
		endSecond()
		require.NoError(t, try(third, largeread.Size+1))
		endThird()
	})
	require.NoError(t, get(largeread.AdmitFew(t.Context(), fairlimit.New(1, 1)), largeread.Size+1), "without a scope")
}

func TestLargeResponseIsRefused(t *testing.T) {
	t.Parallel()
	ctx := largeread.Refuse(t.Context())
	require.NoError(t, get(ctx, largeread.Size))
	s := &server{body: strings.NewReader(strings.Repeat("x", largeread.Size+1))}
	require.ErrorIs(t, read(ctx, s, largeread.Size+1), largeread.ErrLarge)
	assert.Equal(t, 1, s.closed)
}

// watched sends the list of a watch whose answer has so many bytes.
func watched(ctx context.Context, query string, s http.RoundTripper) error {
	request, err := http.NewRequestWithContext(largeread.RefusePages(ctx), http.MethodGet, "https://api/?"+query, http.NoBody)
	if err != nil {
		return err
	}
	response, err := largeread.Wrap(s).RoundTrip(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

func TestLargePagesOfAWatchAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		query string
		size  int
		want  error
	}{
		"a large page":         {"limit=10", largeread.Size + 1, largeread.ErrLarge},
		"another one":          {"limit=10", largeread.Size, nil},
		"a page of one object": {"limit=1&continue=x", largeread.Size + 1, nil},
		"a list without pages": {"limit=0", largeread.Size + 1, nil},
		"a watch":              {"watch=true", largeread.Size + 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorIs(t, watched(t.Context(), tc.query, &server{body: strings.NewReader(strings.Repeat("x", tc.size))}), tc.want)
		})
	}
}

// gaveUp is a server that records whether the request had ended when its answer was closed.
type gaveUp struct{ ended bool }

func (g *gaveUp) RoundTrip(r *http.Request) (*http.Response, error) {
	closed := func() error { g.ended = r.Context().Err() != nil; return nil }
	return &http.Response{StatusCode: http.StatusOK, Body: closing{strings.NewReader(strings.Repeat("x", largeread.Size+1)), closed}}, nil
}

type closing struct {
	io.Reader
	closed func() error
}

func (c closing) Close() error { return c.closed() }

// Below, a list that is closed before its end would be one that the client could not use.
func TestRefusedResponseIsOneThatTheCallerHasGivenUp(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{"limit=10": true, "limit=1": false} {
		s := &gaveUp{}
		_ = watched(t.Context(), query, s)
		assert.Equal(t, want, s.ended, query)
	}
}

func TestResponseWithoutAScopeIsReadAtOnce(t *testing.T) {
	t.Parallel()
	require.NoError(t, get(largeread.Admit(t.Context()), largeread.Size+1))
}

func TestResponseThatIsCutOffIsAnError(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut off")
	s := &server{body: io.MultiReader(strings.NewReader("x"), iotest.ErrReader(cut))}
	require.ErrorIs(t, read(largeread.Refuse(t.Context()), s, 1), cut)
	assert.Equal(t, 1, s.closed)
}

func TestRestOfALargeResponseThatComesTooLateHasWaited(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut off")
	head := func() io.Reader { return strings.NewReader(strings.Repeat("x", largeread.Size+1)) }
	for name, tc := range map[string]struct {
		ends, waited bool
		body         io.Reader
		err          error
	}{
		"the context has ended":              {ends: true, body: io.MultiReader(head(), iotest.ErrReader(cut)), err: cut, waited: true},
		"the context ended at the last byte": {ends: true, body: head()},
		"the answer is cut off":              {body: io.MultiReader(head(), iotest.ErrReader(cut)), err: cut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			limit := largeread.New(1, 1)
			scoped, done := limit.Begin(ctx, "a")
			defer done()
			request, err := http.NewRequestWithContext(largeread.Admit(scoped), http.MethodGet, "https://api/", http.NoBody)
			require.NoError(t, err)
			response, err := largeread.Wrap(&server{body: tc.body}).RoundTrip(request)
			require.NoError(t, err)
			if tc.ends {
				cancel()
			}
			_, err = io.ReadAll(response.Body)
			require.NoError(t, response.Body.Close())
			require.ErrorIs(t, err, tc.err)
			assert.Equal(t, tc.waited, errors.Is(err, largeread.ErrWaiting))
		})
	}
}

func TestTransportBelowIsFound(t *testing.T) {
	t.Parallel()
	s := &server{}
	wrapped, ok := largeread.Wrap(s).(interface{ WrappedRoundTripper() http.RoundTripper })
	require.True(t, ok, "the wrapper shows what it wraps")
	assert.Same(t, s, wrapped.WrappedRoundTripper())
}
