package poll

import (
	"testing"
	"time"
)

// Repeat makes attempts, numbered from 0, until one is conclusive, limit of them at most, and reports whether one was. An
// attempt is inconclusive where the machine was too slow for what it is to show, like two writes within the settle time:
// then neither a right nor a wrong outcome shows anything. The reason goes to the log of the test.
func Repeat(t testing.TB, limit int, reason string, attempt func(n int) (conclusive bool)) bool {
	t.Helper()
	for n := range limit {
		if attempt(n) {
			return true
		}
		t.Logf("attempt %d of %d shows nothing: %s", n+1, limit, reason)
	}
	return false
}

const (
	// steadyAttempts is how often Steadily tries at most.
	steadyAttempts = 3
	// look is how often the clock is looked at.
	look = 20 * time.Millisecond
	// tolerated is by how much a look may be late: a fraction of the shortest time that matters, the settle time.
	tolerated = 250 * time.Millisecond
)

// Steadily makes attempts until one is right. A wrong one is the last as well, unless the machine stalled meanwhile: then
// it is inconclusive. What the last attempt has found is for the caller to judge.
func Steadily(t testing.TB, attempt func() (right bool)) {
	t.Helper()
	steadily(t, attempt, stalls)
}

func steadily(t testing.TB, attempt func() bool, stalls func() (longest func() time.Duration)) {
	t.Helper()
	Repeat(t, steadyAttempts, "the machine stalled", func(int) bool {
		longest := stalls()
		right := attempt()
		return longest() < tolerated || right
	})
}

// stalls looks at the clock until longest is called, which returns by how much the latest look was late.
func stalls() (longest func() time.Duration) {
	stop, found := make(chan struct{}), make(chan time.Duration)
	go func() {
		latest := time.Duration(0)
		for {
			due := time.Now().Add(look)
			select {
			case <-stop:
				found <- latest
				return
			case <-time.After(look):
				latest = max(latest, time.Since(due))
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-found
	}
}
