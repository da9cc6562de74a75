package reload

import (
	"context"
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
	prioritySlot     = priorityConfig + 1
	priorityConfig   = 0
	priorityWorkload = handler.LowPriority
	priorityRetry    = priorityWorkload - 1
)

// leadership is since when this process leads. It is safe for concurrent use.
type leadership struct{ since atomic.Pointer[time.Time] }

// Begin begins the lead.
func (l *leadership) Begin(now time.Time) { l.since.Store(&now) }

// Since returns when the lead began, or false if this process is a standby.
func (l *leadership) Since() (time.Time, bool) {
	if since := l.since.Load(); since != nil {
		return *since, true
	}
	return time.Time{}, false
}

// queue has the workloads to look at, each once. It is safe for concurrent use.
type queue struct {
	now   func() time.Time
	leads *leadership
	aging *aging
	// to is nil until the controller starts.
	to atomic.Pointer[workqueue.TypedRateLimitingInterface[workload.Key]]
}

func newQueue(leads *leadership, now func() time.Time) *queue {
	return &queue{now: now, leads: leads, aging: newAging()}
}

// source feeds the queue by what begins when the controller starts its sources.
func (q *queue) source(begin func(ctx context.Context)) source.TypedSource[workload.Key] {
	return source.TypedFunc[workload.Key](func(ctx context.Context, to workqueue.TypedRateLimitingInterface[workload.Key]) error {
		q.to.Store(&to)
		go begin(ctx)
		return nil
	})
}

// add queues workloads, unless this process is a standby: when it becomes the leader, lead queues all that are known.
func (q *queue) add(priority int, keys ...workload.Key) {
	to := q.to.Load()
	if _, leads := q.leads.Since(); to == nil || !leads {
		return
	}
	if priority < priorityConfig {
		q.aging.Queued(q.now(), keys...)
	}
	if pq, ok := (*to).(priorityqueue.PriorityQueue[workload.Key]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
		return
	}
	for _, key := range keys {
		(*to).Add(key)
	}
}

// retry queues a workload whose reconciliation failed, after a while.
func (q *queue) retry(key workload.Key, after time.Duration) reconcile.Result {
	q.aging.Queued(q.now().Add(after), key)
	return again(after, priorityRetry)
}

// raise gives workloads that wait in the queue for too long the priority of a change of configuration, until the context ends.
func (q *queue) raise(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			q.add(priorityConfig, q.aging.Raise(q.now())...)
		}
	}
}

// again queues a workload after a while.
func again(after time.Duration, priority int) reconcile.Result {
	return reconcile.Result{RequeueAfter: after, Priority: &priority}
}
