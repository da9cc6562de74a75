package reload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
)

// writeLimit is how long a write may take. A validating webhook may take up to 30 s, but a namespace has few slots for writes.
const writeLimit = 10 * time.Second

// maxWrites is how many writes may be in flight in total. As many workers are there besides those that opts.Workers asks for,
// so that a write that hangs holds none of these.
const maxWrites = 64

// errNoAnswer is a write that was given up. It may have been stored all the same.
var errNoAnswer = errors.New("no answer within 10s: an admission webhook in this namespace, or the API server, hangs")

// The priorities of the queue besides those of events: a workload with a slot for its write uses it at once, and what failed
// comes after what was not tried.
const (
	prioritySlot  = priorityConfig + 1
	priorityRetry = priorityWorkload - 1
)

func newWrites(l *loop) *inflight.Limit[Key] {
	return inflight.New(inflight.Options{Total: maxWrites}, func(key Key) { l.add(prioritySlot, key) })
}

// mayWrite reports whether the workload has a slot for its writes. If not, it is queued again when it has one.
func (l *loop) mayWrite(s subject, class inflight.Class) bool {
	if l.backoff.failing(s.key) {
		class = inflight.Retry
	}
	return l.writes.Enter(s.key.Namespace, s.key, class)
}

// write sends a write of a workload that has a slot, and gives it up after a while.
func (l *loop) write(ctx context.Context, s subject, send func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	start := time.Now()
	err := send(limited)
	l.writes.Observe(s.key.Namespace, time.Since(start))
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return err
}

// registerWrites registers the metrics of the writes.
func registerWrites(reg prometheus.Registerer, writes *inflight.Limit[Key]) {
	register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_writes_in_flight",
		Help: "Workloads that have a slot for their writes: at most 64, and 8 in a namespace.",
	}, func() float64 { return float64(writes.InFlight()) }))
	register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_writes_waiting",
		Help: "Workloads that wait for a slot for their writes: their namespace, or all together, have too many in flight.",
	}, func() float64 { return float64(writes.Waiting()) }))
}

// again queues a workload after a while.
func again(after time.Duration, priority int) reconcile.Result {
	return reconcile.Result{RequeueAfter: after, Priority: &priority}
}
