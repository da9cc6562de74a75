package poll

import (
	"context"
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
	// question is the pause between two questions, answer how long a process may take to answer one under load.
	question, answer = 100 * time.Millisecond, 750 * time.Millisecond
)

// Steadily makes attempts until one is right. A wrong one is the last as well, unless the machine stalled meanwhile, or a process
// that the attempt depends on, which is asked all the time and may refuse: then it is inconclusive. What the last attempt has found
// is for the caller to judge.
func Steadily(t testing.TB, attempt func() (right bool), asks ...func(context.Context) error) {
	t.Helper()
	steadily(t, attempt, func() func() time.Duration { return stalls(t.Context(), asks...) })
}

func steadily(t testing.TB, attempt func() bool, stalls func() (longest func() time.Duration)) {
	t.Helper()
	Repeat(t, steadyAttempts, "the machine stalled", func(int) bool {
		longest := stalls()
		right := attempt()
		return longest() < tolerated || right
	})
}

// stalls looks at the clock, and asks, until longest is called, which returns by how much the latest look or answer was late.
func stalls(ctx context.Context, asks ...func(context.Context) error) (longest func() time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan time.Duration, 1+len(asks)) // a test may fail within the attempt
	go func() { found <- latestLook(ctx) }()
	for _, ask := range asks {
		go func() { found <- latestAnswer(ctx, ask) }()
	}
	return func() time.Duration {
		cancel()
		latest := <-found
		for range asks {
			latest = max(latest, <-found)
		}
		return latest
	}
}

// latestLook looks at the clock until ctx is done.
func latestLook(ctx context.Context) (latest time.Duration) {
	for {
		due := time.Now().Add(look)
		select {
		case <-ctx.Done():
			return latest
		case <-time.After(look):
			latest = max(latest, time.Since(due))
		}
	}
}

// latestAnswer asks until ctx is done. An answer that is not there then counts.
func latestAnswer(ctx context.Context, ask func(context.Context) error) (latest time.Duration) {
	for {
		due := time.Now().Add(answer)
		_ = ask(ctx) // a refusal is an answer
		latest = max(latest, time.Since(due))
		select {
		case <-ctx.Done():
			return latest
		case <-time.After(question):
		}
	}
}
