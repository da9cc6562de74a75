package chain

import (
	"context"
	"sync"
)

// lifetime is that of a configuration: the watches, reads and writes that were begun under it end with it. The evaluator
// alone uses it.
type lifetime struct {
	ctx     context.Context // nil before the first one
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func (l *lifetime) begin(ctx context.Context) { l.ctx, l.cancel = context.WithCancel(ctx) }

// run runs something in a goroutine of its own. Its context ends with the configuration.
func (l *lifetime) run(do func(ctx context.Context)) {
	ctx := l.ctx
	l.running.Go(func() { do(ctx) })
}

// end ends the context, and waits for all that is running.
func (l *lifetime) end() {
	if l.cancel != nil {
		l.cancel()
	}
	l.running.Wait()
	l.cancel = nil
}
