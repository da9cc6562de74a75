package tracking

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// liveReadLimit is how long the loop waits for one object of a failing watch: each such wait holds a worker.
	liveReadLimit = 3 * time.Second
	// workloadReads is how many workloads of one kind are read at a time. There may be several kinds.
	workloadReads = 32
)

// liveReads bounds the reads of the objects of a failing watch: where a conversion webhook, or the API server, hangs, they must not hold
// all workers. After a read without an answer, one is sent at a time until one is answered. It is safe for concurrent use.
type liveReads struct {
	mu       sync.Mutex
	inFlight int
	// hang says that the last read that ended had no answer.
	hang bool
}

// errSkipped is a read that was not sent.
var errSkipped = errors.New("too many reads of this watch are in flight")

// do sends a read, unless as many as possible are in flight.
func (r *liveReads) do(ctx context.Context, read func(context.Context) error) error {
	if !r.begin() {
		return errSkipped
	}
	hang := false
	defer func() { r.end(hang) }()
	limited, cancel := context.WithTimeout(ctx, liveReadLimit)
	defer cancel()
	err := read(limited)
	hang = err != nil && errors.Is(limited.Err(), context.DeadlineExceeded)
	return err
}

func (r *liveReads) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := workloadReads
	if r.hang {
		most = 1
	}
	if r.inFlight >= most {
		return false
	}
	r.inFlight++
	return true
}

func (r *liveReads) end(hang bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
	r.hang = hang
}
