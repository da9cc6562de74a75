package chain

import (
	"context"
	"time"
)

// gather adds to what is pending, and wakes the goroutine of Start.
func (c *Chain) gather(add func(*pending)) {
	c.mu.Lock()
	add(&c.pending)
	c.mu.Unlock()
	signal(c.wake)
}

// arrive is gather for the end of what the goroutine of Start has begun.
func (c *Chain) arrive(add func(*pending)) {
	c.mu.Lock()
	add(&c.arrived)
	c.mu.Unlock()
	signal(c.came)
}

func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// Start owns the graph until the context ends.
func (c *Chain) Start(ctx context.Context) error {
	defer c.stopSources()
	for {
		var asked chan struct{}
		gathered := true
		select {
		case <-ctx.Done():
			return nil
		case asked = <-c.undebounced:
		case <-c.came:
			gathered = false
		case <-c.wake:
			if asked = c.pause(ctx); ctx.Err() != nil {
				return nil
			}
		}
		c.apply(ctx, c.take(gathered))
		c.sync()
		if asked != nil {
			close(asked)
		}
	}
}

// pause lets changes gather for the debounce, then has the config objects among them read, so that one evaluation takes in all
// of them. Reads that take longer than another debounce do not hold up the rest. A question ends both.
func (c *Chain) pause(ctx context.Context) (asked chan struct{}) {
	asked = c.wait(ctx, nil)
	if asked == nil && ctx.Err() == nil {
		asked = c.wait(ctx, c.readChanged()) //nolint:contextcheck // a read ends with the configuration
	}
	return asked
}

// wait waits for something, or for a question; for a debounce at most.
func (c *Chain) wait(ctx context.Context, done <-chan struct{}) (asked chan struct{}) {
	timer := time.NewTimer(c.options.Debounce)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case asked = <-c.undebounced:
	case <-done:
	case <-timer.C:
	}
	return asked
}

// take returns what has arrived, and what has gathered, if that has waited.
func (c *Chain) take(gathered bool) pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.came:
	default:
	}
	p := c.arrived
	c.arrived = pending{}
	if gathered {
		p = p.and(c.pending)
		c.pending = pending{}
	}
	return p
}
