package tracking

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

const (
	// liveReadLimit is how long the loop waits for one object of a failing watch: each such wait holds a worker.
	liveReadLimit = 3 * time.Second
	// workloadReads is how many workloads of one kind are read at a time. There may be several kinds.
	workloadReads = 32
	// largeWaits is how many large workloads wait for their turn at a time, in total and of one namespace. If none did, none would be read
	// where reconciliations always wait for a turn; if all did, those of one namespace would hold all reads of the kind.
	largeWaits             = 8
	largeWaitsOfANamespace = 1
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
	hang = err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && !errors.Is(err, largeread.ErrWaiting)
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

// liveWorkloads reads workloads whose watch fails.
type liveWorkloads struct {
	apiReader client.Reader
	// large bounds the workloads that are in memory as a whole.
	large largeread.Limit
	// waiting bounds those of them that wait.
	waiting *fairlimit.Limit
	index   *index.Index
	entries *entries
	// summary returns what the watches keep of a workload: versions of both are compared.
	summary func(workload.Object) workload.Summary
	// forget drops the state of a workload.
	forget func(workload.Key)
}

// seen returns what is kept of a workload that was read live: mostly the version of before, which the watch holds.
func seen(before, live workload.Summary) workload.Summary {
	if matters(before, live) {
		return live
	}
	return before
}

// get reads a workload live, and keeps the index up to date in place of the watch. Where the read fails or is skipped, what was seen last
// must do until the next re-check; where the watch has delivered the workload meanwhile, that may be newer.
func (l *liveWorkloads) get(ctx context.Context, w *watched, key workload.Key) (workload.Summary, bool) {
	known, _ := w.workloads.Get(key.Namespace, key.Name)
	live := workload.Summary{Kind: w.kind}
	err := w.reads.do(ctx, func(ctx context.Context) (err error) {
		live, err = l.read(ctx, w.kind, key)
		return err
	})
	w.setSkipped(key, errors.Is(err, errSkipped) || errors.Is(err, largeread.ErrWaiting))
	if err != nil && !apianswer.NotFound(err) {
		return w.lastSeen(key)
	}
	w.unlessGone(func() {
		if now, _ := w.workloads.Get(key.Namespace, key.Name); now.Kept != known.Kept {
			live = now
			return
		}
		before, readLive := w.readLive[key]
		if !readLive {
			before = known
		}
		w.setReadLive(key, seen(before, live))
		if live.Kept == nil {
			l.index.Delete(key)
			l.forget(key)
			return
		}
		l.entries.update(key, before, live, "")
	})
	return live, live.Kept != nil
}

// read reads a workload as a whole, and returns what is kept of it. A large one needs a turn, which ends with that. Few wait for it.
func (l *liveWorkloads) read(ctx context.Context, kind workload.Kind, key workload.Key) (workload.Summary, error) {
	ctx, done := l.large.Begin(ctx, key.Namespace)
	defer done()
	u, name := kind.NewObject(), types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	if err := l.apiReader.Get(largeread.AdmitFew(ctx, l.waiting), name, u); err != nil {
		return workload.Summary{Kind: kind}, err
	}
	return l.summary(workload.Object{Kind: kind, Raw: u.Object}), nil
}
