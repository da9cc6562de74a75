package check

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// A program that is late has not acted when nothing has changed for long.
func TestRest(t *testing.T) {
	t.Parallel()
	const never = time.Hour
	for name, c := range map[string]struct {
		// at is when the program acts, seen when it has seen all, and done when it has nothing left to do.
		at, seen, done time.Duration
		want           string
		atMost         time.Duration
	}{
		"nothing is to be done":                    {never, 0, 0, "old", 2 * time.Second},
		"the program acts at once":                 {time.Second, 0, 0, "new", 3 * time.Second},
		"the watch is late":                        {time.Minute, time.Minute, 0, "new", 62 * time.Second},
		"what was seen is retried":                 {5 * time.Second, 0, 5 * time.Second, "new", 7 * time.Second},
		"what is due can never be done":            {never, 0, never, "old", 11 * time.Second},
		"what is due is not done, and watches lag": {time.Minute, time.Minute, never, "new", 72 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				all, err := lateSite(c.at, c.seen, c.done).rest(t.Context())
				require.NoError(t, err)
				assert.Equal(t, c.want, world.Text(all[world.ConfigMaps][0], "metadata", "resourceVersion"))
				assert.LessOrEqual(t, time.Since(start), c.atMost)
			})
		})
	}
}

func TestRestFailsWithoutTheBarrier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := lateSite(0, time.Hour, 0).rest(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded, "a program that reloads nothing any more is no world at rest")
		assert.Equal(t, longest, time.Since(start))
	})
}

// lateSite is a world in which a version changes at a time, a barrier does not end before another, and something is left to be done until a
// third.
func lateSite(at, seen, done time.Duration) site {
	start := time.Now()
	return site{
		read: func(context.Context, string) (stored, error) {
			version := "old"
			if time.Since(start) >= at {
				version = "new"
			}
			return stored{world.ConfigMaps: {{"metadata": world.Object{"uid": "app", "resourceVersion": version}}}}, nil
		},
		seen: func(ctx context.Context) error {
			late, cancel := context.WithTimeout(ctx, max(seen-time.Since(start), time.Millisecond))
			defer cancel()
			<-late.Done()
			return ctx.Err()
		},
		undone: func(context.Context) error {
			if time.Since(start) < done {
				return errUndone
			}
			return nil
		},
	}
}
