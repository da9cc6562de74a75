package poll_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	notYet := errors.New("not yet")
	tests := map[string]struct {
		after time.Duration
		asked int
		err   bool
		why   string
	}{
		"at once": {0, 1, false, "what is there is not waited for"},
		"later":   {25 * time.Second, 4, false, "it is asked every ten seconds"},
		"never":   {time.Hour, 7, true, "after a minute it is given up"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
				defer cancel()
				start, asked := time.Now(), 0
				err := poll.Until(ctx, "the end", 10*time.Second, func(context.Context) error {
					if asked++; time.Since(start) < test.after {
						return notYet
					}
					return nil
				})
				assert.Equal(t, test.asked, asked, test.why)
				if !test.err {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, notYet, "the last answer says what is missing")
				assert.ErrorContains(t, err, "await the end")
			})
		})
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	silent := func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("ask: %w", ctx.Err())
	}
	answer := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	tests := map[string]struct {
		answers []func(context.Context) error
		want    error
		took    time.Duration
		why     string
	}{
		"yes":            {[]func(context.Context) error{answer(nil)}, nil, 0, "that is an answer"},
		"no":             {[]func(context.Context) error{answer(refused)}, refused, 0, "that is one, too"},
		"was suspended":  {[]func(context.Context) error{silent, answer(nil)}, nil, time.Second, "it is asked once more"},
		"does not speak": {[]func(context.Context) error{silent, silent}, context.DeadlineExceeded, 2 * time.Second, "and then no more"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start, asked := time.Now(), 0
				err := poll.Ask(t.Context(), time.Second, func(ctx context.Context) error {
					asked++
					return test.answers[asked-1](ctx)
				})
				require.ErrorIs(t, err, test.want)
				assert.Len(t, test.answers, asked, test.why)
				assert.Equal(t, test.took, time.Since(start))
			})
		})
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		asked := 0
		err := poll.Ask(ctx, time.Minute, func(ctx context.Context) error {
			asked++
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1, asked)
	})
}
