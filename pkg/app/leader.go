package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// standbySlack is how long after its end a lease may be free. By then, another replica has taken a lease whose holder is gone.
const standbySlack = 5 * time.Second

// What a look at the lease has found, where it is not the name of the leader.
const (
	foundNone       = "no leader"
	foundUnreadable = "no lease"
)

// elected returns what reports whether this replica has begun to lead. A manager that leads no more ends.
func elected(mgr manager.Manager) func() bool {
	return func() bool {
		select {
		case <-mgr.Elected():
			return true
		default:
			return false
		}
	}
}

// leadingLoop is the loop, and knows whether it leads. The metrics are served on after its end.
type leadingLoop struct {
	starter

	elected func() bool
	ended   atomic.Bool
}

// Start runs the loop. A lease is given away before it returns.
func (l *leadingLoop) Start(ctx context.Context) error {
	defer l.ended.Store(true)
	return l.starter.Start(ctx)
}

// metric returns the metric of the leader.
func (l *leadingLoop) metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pod_reloader_leader", Help: "1 if this replica is the leader, which makes the reloads; else 0.",
	}, func() float64 { return boolean(l.elected() && !l.ended.Load()) })
}

// leadership reports who leads: once this replica does, and while it does not, each change. By its name, the lease shows which replicas
// elect a leader among themselves.
type leadership struct {
	lease   types.NamespacedName
	every   time.Duration // a look at the lease, which is one request
	elected <-chan struct{}
	reader  client.Reader
	log     logr.Logger
}

var _ manager.LeaderElectionRunnable = leadership{}

// NeedLeaderElection is false: a standby reports, too.
func (leadership) NeedLeaderElection() bool { return false }

// Start reports until this replica leads or the context ends.
func (l leadership) Start(ctx context.Context) error {
	looks := time.NewTicker(l.every)
	defer looks.Stop()
	var last string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.elected:
			l.log.Info("this replica leads", "lease", l.lease.String())
			return nil
		case <-looks.C:
			last = l.reportStandby(ctx, last)
		}
	}
}

// reportStandby logs who leads, if that differs from the last look, and returns it.
func (l leadership) reportStandby(ctx context.Context, last string) (found string) {
	lease := &coordinationv1.Lease{}
	limited, cancel := context.WithTimeout(ctx, ownReadLimit)
	defer cancel()
	err := l.reader.Get(limited, l.lease, lease)
	renewed := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
	found = find(lease.Spec, renewed, err)
	switch {
	case found == "", found == last, ctx.Err() != nil:
		return last
	case found == foundUnreadable:
		l.log.Error(err, "cannot read the lease", "lease", l.lease.String())
	case found == foundNone:
		l.log.Info("no replica leads, and nothing is reloaded", "lease", l.lease.String(), "renewed", renewed.UTC().Format(time.RFC3339))
	default:
		l.log.Info("another replica leads", "lease", l.lease.String(), "leader", found)
	}
	return found
}

// find returns the leader that a lease names, or what else there is to report: nothing while another replica may be about to take it.
func find(lease coordinationv1.LeaseSpec, renewed time.Time, err error) string {
	ended := renewed.Add(time.Duration(ptr.Deref(lease.LeaseDurationSeconds, 0)) * time.Second)
	switch free := time.Since(ended); {
	case err != nil:
		return foundUnreadable
	case free > standbySlack:
		return foundNone
	case free > 0:
		return ""
	default:
		return ptr.Deref(lease.HolderIdentity, "")
	}
}

// buildLeadership adds what reports the leader to the manager.
func (b *builder) buildLeadership(mgr manager.Manager) error {
	b.loop = &leadingLoop{starter: mgr, elected: elected(mgr)}
	b.registry.MustRegister(b.loop.metric())
	if !b.options.Election.Enabled {
		return nil
	}
	return mgr.Add(leadership{
		lease:   types.NamespacedName{Namespace: b.options.Election.Namespace, Name: b.options.Election.Lease},
		every:   b.options.Election.LeaseDuration + standbySlack,
		elected: mgr.Elected(),
		reader:  mgr.GetAPIReader(),
		log:     b.log.WithName("leader"),
	})
}
