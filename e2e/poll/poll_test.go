package poll_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/poll"
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
		"at once": {0, 1, false, "nobody waits for what is there"},
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
