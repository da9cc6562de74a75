package promise_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// settle is how long configuration must be quiet in the shared installation, settleMax how long it may take to be.
const settle, settleMax = 3 * time.Second, 15 * time.Second

// attempts is how often a test tries to make its writes in time.
const attempts = 5

const tooLate = "the writes were not in time"

// within reports whether writes were made in less than a time. Writes within the settle time are one change. On an
// overloaded machine they are several, and what the loop does then shows nothing.
func within(limit time.Duration, writes func()) bool {
	began := time.Now()
	writes()
	return time.Since(began) < limit
}

// inTime makes attempts, each with a fixture of its own, until one reports that its writes were in time.
func inTime(t *testing.T, attempt func(s *fixture.Fixture) bool) {
	t.Helper()
	made := poll.Repeat(t, attempts, tooLate, func(int) bool { return attempt(fixture.New(t, shared)) })
	require.True(t, made, "none of %d attempts made its writes in time: the machine is too slow", attempts)
}

// enough repeats an attempt at some repetitions, which reports how many of them were in time, until as many were as are
// needed.
func enough(t testing.TB, needed int, attempt func() int) {
	t.Helper()
	for done := 0; done < needed; {
		require.True(t, poll.Repeat(t, attempts, tooLate, func(int) bool {
			inTime := attempt()
			done += inTime
			return inTime > 0
		}), "only %d of %d repetitions were in time", done, needed)
	}
}

// atATime is how many repetitions are made at a time at most.
const atATime = 5

// enoughAtATime repeats an attempt until it was in time for as many repetitions as are needed. It makes some repetitions at a time,
// numbered from first, of which all are in time or none: fewer of them where the machine is slow.
func enoughAtATime(t testing.TB, needed int, attempt func(first, times int) (inTime bool)) {
	t.Helper()
	made, times := 0, atATime
	enough(t, needed, func() int {
		first, now := made, times
		made += now
		if !attempt(first, now) {
			times = max(1, now/2)
			return 0
		}
		times = min(atATime, now+1)
		return now
	})
}
