package alert

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

const (
	// queueSize is how many alerts of a namespace may wait. A change that reloads more workloads than that at once overflows it if the sink
	// is slower than the reloads.
	queueSize = 1024
	// totalSize is how many may wait in all. Then a namespace is to have fewer than its share of them.
	totalSize = 16 * queueSize
	// senders is how many alerts are delivered at the same time.
	senders = 4
	// stopGrace is how long the rest of the queue is delivered when the program stops.
	stopGrace = 5 * time.Second
	// logEvery is how often a failure is logged; the metric counts each one.
	logEvery = time.Minute
)

// outcome is what became of an alert, as a label of the metric.
type outcome string

const (
	delivered outcome = "delivered"
	// overflow: the queue of the namespace was full, or the program had stopped.
	overflow outcome = "overflow"
	// refused: the sink answered that it does not want it. failed: no attempt was answered in time, or by an error of the sink.
	refused outcome = "refused"
	failed  outcome = "failed"
)

// Notifier delivers alerts. It is safe for concurrent use.
type Notifier struct {
	config Config
	client poster
	counts *prometheus.CounterVec
	log    logr.Logger
	logged rate.Sometimes

	// mu guards what follows; changed is signaled for each alert that is added, and when the queue is closed.
	mu      sync.Mutex
	changed *sync.Cond
	queue   waiting
	// closed is set once nothing is added any more.
	closed bool
}

// New returns a Notifier that registers its metrics. It accepts alerts at once and delivers them once it is started.
func New(config Config, registry prometheus.Registerer, log logr.Logger) *Notifier {
	n := &Notifier{
		config: config, client: newPoster(config), queue: waiting{alerts: map[string][]Reload{}}, log: log,
		logged: rate.Sometimes{Interval: logEvery},
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pod_reloader_alerts_total",
			Help: fmt.Sprintf("Alerts about reloads, by outcome: delivered; or dropped because the queue of the namespace was full (overflow), "+
				"because the sink refused the alert (refused), or because all %d attempts failed (failed).", attempts),
		}, []string{"outcome"}),
	}
	n.changed = sync.NewCond(&n.mu)
	registry.MustRegister(n.counts)
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_pending_alerts", Help: "Alerts that wait to be delivered.",
	}, func() float64 { return float64(n.pending()) }))
	for _, o := range []outcome{delivered, overflow, refused, failed} {
		n.counts.WithLabelValues(string(o))
	}
	return n
}

func (n *Notifier) pending() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.queue.count
}

// Accepts reports whether another alert of a namespace is queued.
func (n *Notifier) Accepts(namespace string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.accepts(namespace)
}

func (n *Notifier) accepts(namespace string) bool {
	queued := n.queue.in(namespace)
	if n.queue.count >= totalSize && queued >= totalSize/len(n.queue.turns) {
		return false
	}
	return !n.closed && queued < queueSize
}

// Offer queues an alert. It never blocks: if the queue of the namespace is full, the alert is dropped.
func (n *Notifier) Offer(r Reload) {
	if !n.add(r) {
		n.report("the queue of the namespace is full")
		n.count(overflow)
	}
}

// add queues an alert, and reports whether it has. The one about a change that is not reloaded comes after Accepts and a write, while others
// come: it is added to a full queue, too, since nothing finds the change again. The writes in flight limit how many.
func (n *Notifier) add(r Reload) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || !r.NotReloaded && !n.accepts(r.Namespace) {
		return false
	}
	n.queue.add(r)
	n.changed.Signal()
	return true
}

// next returns the next alert once there is one; false if the queue is closed and empty.
func (n *Notifier) next() (Reload, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.queue.count == 0 {
		if n.closed {
			return Reload{}, false
		}
		n.changed.Wait()
	}
	return n.queue.take(), true
}

// Start delivers alerts until the context ends, and then those that are queued, as far as that is done in stopGrace.
func (n *Notifier) Start(ctx context.Context) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var group sync.WaitGroup
	for range senders {
		group.Go(func() { n.deliverAll(requests) })
	}
	<-ctx.Done()
	stop := time.AfterFunc(stopGrace, cancel)
	defer stop.Stop()
	n.close()
	group.Wait()
	return nil
}

func (n *Notifier) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.changed.Broadcast()
}

// deliverAll delivers what is in the queue until that is closed and empty.
func (n *Notifier) deliverAll(ctx context.Context) {
	for r, ok := n.next(); ok; r, ok = n.next() {
		if ctx.Err() != nil {
			n.count(overflow)
			continue
		}
		n.deliver(ctx, r)
	}
}

func (n *Notifier) deliver(ctx context.Context, r Reload) {
	body, err := n.config.payload(r)
	if err != nil {
		n.report(err.Error())
		n.count(failed)
		return
	}
	o, err := n.client.post(ctx, body)
	if err != nil {
		n.report(err.Error())
	}
	n.count(o) // the last: the reason is in the log by then
}

func (n *Notifier) count(o outcome) { n.counts.WithLabelValues(string(o)).Inc() }

// report logs a dropped alert, at most one a minute.
func (n *Notifier) report(reason string) {
	n.logged.Do(func() {
		n.log.Info("cannot deliver an alert; dropped", "sink", string(n.config.Sink), "error", reason)
	})
}
