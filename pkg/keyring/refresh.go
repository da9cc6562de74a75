package keyring

import (
	"context"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/recovering"
)

// refreshInterval is the shortest time between two reads that Refresh makes.
const refreshInterval = time.Second

// refresh is a read that Refresh has begun.
type refresh struct {
	// began is when it began, listings how often the watch had listed the Secret by then.
	began    time.Time
	listings uint64
	// done is closed when it has ended. From then on, ended says when, and err how.
	done  chan struct{}
	ended time.Time
	err   error
}

// Refresh reads the Secret now, for a caller that has met an unknown key ID: the watch may be behind. It
// reads at most once a second; a call within that second has the outcome of the last read, unless the watch has listed the Secret since, or
// has seen it go: what was read may have been replaced by something older. It returns when the read began: the ring has each key that was
// in use before that, unless it is lost. It fails where the Secret is invalid, which may have further keys. Where the context ends first,
// the read goes on: other callers may wait for it.
func (k *Keyring) Refresh(ctx context.Context) (began time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	r := k.begin(ctx)
	select {
	case <-r.done:
		return r.began, r.err
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// begin returns the last read, if it counts still; otherwise it begins another one.
func (k *Keyring) begin(ctx context.Context) *refresh {
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := k.refreshed; last != nil && !last.isOver(k.now(), k.known.listings) {
		return last
	}
	r := &refresh{began: k.now(), listings: k.known.listings, done: make(chan struct{})}
	k.refreshed = r
	read := recovering.Func(func() error { return k.read(context.WithoutCancel(ctx)) })
	go func() {
		r.err = read()
		recovering.Log(k.log, r.err)
		r.ended = k.now()
		close(r.done)
	}()
	return r
}

// isOver reports whether the outcome of a read counts no more. One that has not ended counts.
func (r *refresh) isOver(now time.Time, listings uint64) bool {
	select {
	case <-r.done:
		return now.Sub(r.ended) >= refreshInterval || listings != r.listings
	default:
		return false
	}
}
