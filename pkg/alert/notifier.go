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
	// queueSize is how many alerts may wait. A change that reloads more workloads than that at once overflows it if the sink is
	// slower than the reloads.
	queueSize = 1024
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
	// overflow: the queue was full, or the program had stopped.
	overflow outcome = "overflow"
	// refused: the sink answered that it does not want it. failed: no attempt was answered in time, or by an error of the sink.
	refused outcome = "refused"
	failed  outcome = "failed"
)

// Notifier delivers alerts. It is safe for concurrent use.
type Notifier struct {
	config Config
	client poster
	queue  chan Reload
	counts *prometheus.CounterVec
	log    logr.Logger
	logged rate.Sometimes

	// closed is set once nothing reads the queue any more; mu orders that and Offer.
	mu     sync.RWMutex
	closed bool
}

// New returns a Notifier that registers its metrics. It accepts alerts at once and delivers them once it is started.
func New(config Config, registry prometheus.Registerer, log logr.Logger) *Notifier {
	n := &Notifier{
		config: config, client: newPoster(config), queue: make(chan Reload, queueSize), log: log, logged: rate.Sometimes{Interval: logEvery},
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pod_reloader_alerts_total",
			Help: fmt.Sprintf("Alerts about reloads, by outcome: delivered; or dropped because the queue was full (overflow), "+
				"because the sink refused the alert (refused), or because all %d attempts failed (failed).", attempts),
		}, []string{"outcome"}),
	}
	registry.MustRegister(n.counts)
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_pending_alerts", Help: "Alerts that wait to be delivered.",
	}, func() float64 { return float64(len(n.queue)) }))
	for _, o := range []outcome{delivered, overflow, refused, failed} {
		n.counts.WithLabelValues(string(o))
	}
	return n
}

// Offer queues an alert. It never blocks: if the queue is full, the alert is dropped.
func (n *Notifier) Offer(r Reload) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if !n.closed {
		select {
		case n.queue <- r:
			return
		default:
		}
	}
	n.report("the queue is full")
	n.count(overflow)
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
	if !n.closed {
		n.closed = true
		close(n.queue)
	}
}

// deliverAll delivers what is in the queue until that is closed and empty.
func (n *Notifier) deliverAll(ctx context.Context) {
	for r := range n.queue {
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
