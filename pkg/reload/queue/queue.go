package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The priorities of the queue. A workload with a slot for its write uses it at once. What is urgent is a change of
// configuration. What a workload itself reports (it is there, it was edited, it was stamped) can wait until no reload is due:
// so a fan-out is not slowed by the Events about its first reloads. What failed comes after what was not tried.
const (
	Slot     = Config + 1
	Config   = 0
	Workload = handler.LowPriority
	Retry    = Workload - 1
)

// Leadership is since when this process leads. It is safe for concurrent use.
type Leadership struct{ begun atomic.Pointer[begin] }

// begin is the begin of a lead, by the clock of that time, and by one that is never set.
type begin struct{ at, monotonic time.Time }

// Begin begins the lead.
func (l *Leadership) Begin(now time.Time) { l.begun.Store(&begin{now.Round(0), time.Now()}) }

// Since returns when the lead began, or false if this process is a standby. Where the clock, which reads now, was set back since, the begin
// is earlier by as much: what happens from then on is after it.
func (l *Leadership) Since(now time.Time) (since time.Time, leads bool) {
	begun := l.begun.Load()
	if begun == nil {
		return time.Time{}, false
	}
	since = now.Round(0).Add(-time.Since(begun.monotonic))
	if begun.at.Before(since) {
		since = begun.at
	}
	return since, true
}

// Queue has the workloads to look at, each once. It is safe for concurrent use.
type Queue struct {
	now   func() time.Time
	leads *Leadership
	aging *aging
	// to is nil until the controller starts; then opened is closed.
	to     atomic.Pointer[workqueue.TypedRateLimitingInterface[workload.Key]]
	opened chan struct{}
	open   sync.Once
}

// New returns the queue of a process that is, or may become, the leader.
func New(leads *Leadership, now func() time.Time) *Queue {
	return &Queue{now: now, leads: leads, aging: newAging(), opened: make(chan struct{})}
}

// Source feeds the queue by what begins when the controller starts its sources.
func (q *Queue) Source(begin func(ctx context.Context)) source.TypedSource[workload.Key] {
	return source.TypedFunc[workload.Key](func(ctx context.Context, to workqueue.TypedRateLimitingInterface[workload.Key]) error {
		q.to.Store(&to)
		q.open.Do(func() { close(q.opened) })
		go begin(ctx)
		return nil
	})
}

// WaitUntilOpen waits until a source has started: what is added before that is dropped. The error is the context's.
func (q *Queue) WaitUntilOpen(ctx context.Context) error {
	select {
	case <-q.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leads reports whether this process leads.
func (q *Queue) Leads() bool { return q.leads.begun.Load() != nil }

// Taken records that a workload is taken from the queue.
func (q *Queue) Taken(key workload.Key) { q.aging.taken(key) }

// Add queues workloads, unless this process is a standby: when it becomes the leader, all that are known are queued.
func (q *Queue) Add(priority int, keys ...workload.Key) { q.AddAfter(0, priority, keys...) }

// AddAfter is Add after a while. A workload that is queued already is taken no later than without it, and with the higher one of the
// priorities.
func (q *Queue) AddAfter(after time.Duration, priority int, keys ...workload.Key) {
	to := q.to.Load()
	if to == nil || !q.Leads() {
		return
	}
	q.queued(after, priority, keys...)
	if pq, ok := (*to).(priorityqueue.PriorityQueue[workload.Key]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, keys...)
		return
	}
	for _, key := range keys {
		(*to).AddAfter(key, after)
	}
}

// queued records when workloads with a low priority begin to wait.
func (q *Queue) queued(after time.Duration, priority int, keys ...workload.Key) {
	if priority < Config {
		q.aging.add(q.now().Add(after), keys...)
	}
}

// Requeued records the result of a reconciliation, which is to be returned to the controller: that queues the workload by it.
func (q *Queue) Requeued(key workload.Key, result reconcile.Result) reconcile.Result {
	if result.RequeueAfter > 0 && result.Priority != nil {
		q.queued(result.RequeueAfter, *result.Priority, key)
	}
	return result
}

// Raise gives workloads that wait in the queue for too long the priority of a change of configuration, until the context ends.
func (q *Queue) Raise(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			q.Add(Config, q.aging.raise(q.now())...)
		}
	}
}

// After queues a workload after a while, as the result of its reconciliation.
func After(after time.Duration, priority int) reconcile.Result {
	return reconcile.Result{RequeueAfter: after, Priority: &priority}
}
