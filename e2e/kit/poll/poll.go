// Package poll waits by asking again and again, where there is no watch to wait for; and it repeats
// attempts of a test that a slow machine has spoilt. All of e2e builds on it; it imports nothing of e2e.
package poll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Until asks at once, and then every so often, until the answer is nil or ctx is done. The error then says what was
// awaited, and the last answer.
func Until(ctx context.Context, what string, every time.Duration, ask func(context.Context) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await %s: %w (last: %w)", what, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// Ask asks for so long at most, and once more if there was no answer by then: the machine may have stalled.
func Ask(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	err := within(ctx, limit, ask)
	var late interface{ Timeout() bool }
	if errors.As(err, &late) && late.Timeout() && ctx.Err() == nil {
		err = within(ctx, limit, ask)
	}
	return err
}

func within(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return ask(ctx)
}
