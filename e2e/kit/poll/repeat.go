package poll

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Repeat makes attempts, numbered from 0, until one is conclusive, limit of them at most, and reports whether one was. An
// attempt is inconclusive where the machine was too slow for what it is to show, like two writes within the settle time:
// then neither a right nor a wrong outcome shows anything. The reason is noted ([Note]) for each such attempt.
func Repeat(t testing.TB, limit int, reason string, attempt func(n int) (conclusive bool)) bool {
	t.Helper()
	return repeat(limit, func(text string) { t.Helper(); Note(t, text) }, func(n int) string {
		if attempt(n) {
			return ""
		}
		return reason
	})
}

// repeat makes attempts that return why they are inconclusive, until one returns nothing.
func repeat(limit int, note func(text string), attempt func(n int) (reason string)) bool {
	for n := range limit {
		reason := attempt(n)
		if reason == "" {
			return true
		}
		note(fmt.Sprintf("attempt %d of %d shows nothing: %s", n+1, limit, reason))
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

// Steadily makes attempts until one is right, and returns what was wrong with the last one. A wrong one is the last as well, unless the
// machine stalled meanwhile, or a process that the attempt depends on, which is asked all the time and may refuse: then it is
// inconclusive, and what was wrong is noted ([Note]). Ask the API server, not the program that is tested: its own fault is no excuse.
func Steadily(t testing.TB, attempt func() error, asks ...func(context.Context) error) error {
	t.Helper()
	watch := func() func() time.Duration { return stalls(t.Context(), asks...) }
	return steadily(func(text string) { t.Helper(); Note(t, text) }, attempt, watch)
}

func steadily(note func(text string), attempt func() error, stalls func() (longest func() time.Duration)) (wrong error) {
	repeat(steadyAttempts, note, func(int) string {
		longest := stalls()
		wrong = attempt()
		late := longest()
		if wrong == nil || late < tolerated {
			return ""
		}
		return fmt.Sprintf("the machine stalled for %s, and it was wrong: %v", late.Round(time.Millisecond), wrong)
	})
	return wrong
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
