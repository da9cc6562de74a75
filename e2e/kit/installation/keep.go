package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// keeper keeps replicas running, as the kubelet does, and records why each has ended by itself.
type keeper struct {
	// ctx is nil where replicas are not kept running.
	ctx    context.Context //nolint:containedctx // it is the life of the keeper, which is longer than that of a call
	cancel context.CancelFunc
	all    sync.WaitGroup

	mutex  sync.Mutex
	ending []error
}

// keepRunning starts a replica that ends, until it is removed or stopKeeping.
func (i *Installation) keepRunning(replica *Replica) {
	ctx := i.keeping.ctx
	if ctx == nil {
		return
	}
	i.keeping.all.Go(func() {
		seen := 0 // the part of the log that earlier lives have left
		for {
			select {
			case <-ctx.Done():
			case <-replica.Exited():
			}
			if !slices.Contains(i.Replicas(), replica) {
				return // it was removed
			}
			if replica.PID() == 0 {
				seen = i.keeping.note(replica, seen)
			}
			if ctx.Err() != nil {
				return
			}
			_ = replica.Start(ctx) // what does not start is tried again
		}
	})
}

// note records the end of a replica, if it is not one that must be. It returns how long the log is.
func (k *keeper) note(replica *Replica, seen int) int {
	log, err := replica.Log()
	if err == nil {
		err = endOf(replica.ExitCode(), log[min(seen, len(log)):])
	}
	if err != nil {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		k.ending = append(k.ending, fmt.Errorf("%s: %w", replica.Name(), err))
	}
	return len(log)
}

// lostLease is how a leader ends that could not renew its lease. "leader election lost" alone is in the log of any replica that ends.
const lostLease = "run the manager: leader election lost"

// endOf returns what was wrong with the end of a process with an exit code and a log; nil for one that a signal ended, and for a
// leader that could not renew its lease.
func endOf(code int, log string) error {
	if code < 0 || code > 0 && strings.Contains(log, lostLease) {
		return nil
	}
	return fmt.Errorf("it ended by itself with the exit code %d; the end of its log:\n%s", code, log[max(0, len(log)-logTail):])
}

// stopKeeping ends what keeps the replicas running. The error has each replica that has ended by itself since it was called last.
func (i *Installation) stopKeeping() error {
	if i.keeping.cancel != nil {
		i.keeping.cancel()
	}
	i.keeping.all.Wait()
	i.keeping.mutex.Lock()
	defer i.keeping.mutex.Unlock()
	ending := errors.Join(i.keeping.ending...)
	i.keeping.ending = nil
	return ending
}
