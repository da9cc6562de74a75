// Package poll waits for what nobody announces, by asking again and again. All of e2e waits by it where it has nothing
// better, such as a watch.
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

// Ask asks for so long at most, and once more if there was no answer by then: who is asked may be well, and the machine have
// stood still.
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
