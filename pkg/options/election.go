package options

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// jitter is by how much client-go lengthens a retry at random, at most (leaderelection.JitterFactor).
const jitter = 1.2

// electionFlags are those about the leader.
type electionFlags struct {
	elect, enableHA       bool
	released              bool
	namespace, id         string
	lease, renewal, retry time.Duration
}

func (f *electionFlags) add(set *pflag.FlagSet) {
	set.BoolVar(&f.elect, "leader-elect", false, "elect a leader for the loop; needed with more than one replica")
	set.BoolVar(&f.enableHA, "enable-ha", false, "Reloader's name for --leader-elect")
	set.StringVar(&f.namespace, "leader-election-namespace", "", "`namespace` of the lease (default: that of the installation)")
	set.StringVar(&f.id, "leader-election-id", "", "`name` of the lease (default: that of the installation)")
	set.BoolVar(&f.released, "leader-election-release-on-cancel", true, "no effect: the lease is always released when the program stops")
	set.DurationVar(&f.lease, "leader-election-lease-duration", 15*time.Second,
		"how long a lease is valid after its last renewal: another replica leads this long after a leader was killed")
	set.DurationVar(&f.renewal, "leader-election-renew-deadline", 10*time.Second, "how long a leader that cannot renew its lease goes on")
	set.DurationVar(&f.retry, "leader-election-retry-period", time.Second,
		"how often the leader renews its lease; the others ask for it after 1 to 2.2 times this period")
}

func (f *electionFlags) complete(p *problems, own, installation string) Election {
	e := Election{
		Enabled: f.elect || f.enableHA, Namespace: f.namespace, Lease: cmp.Or(f.id, installation),
		LeaseDuration: f.lease, RenewDeadline: f.renewal, RetryPeriod: f.retry,
	}
	if e.Namespace == "" {
		e.Namespace = own
	} else {
		p.namespace("leader-election-namespace", e.Namespace)
	}
	if f.id != "" {
		p.add("leader-election-id", reference.ValidName(f.id))
	}
	// A leader must have stopped before another replica may take the lease.
	if e.LeaseDuration <= e.RenewDeadline || e.LeaseDuration%time.Second != 0 {
		p.add("leader-election-lease-duration", fmt.Errorf(
			"%s: want whole seconds, as a Lease has them, and more than --leader-election-renew-deadline, which is %s", e.LeaseDuration, e.RenewDeadline))
	}
	if float64(e.RenewDeadline) <= jitter*float64(e.RetryPeriod) {
		p.add("leader-election-renew-deadline", fmt.Errorf(
			"%s: want more than %v times --leader-election-retry-period, which is %s", e.RenewDeadline, jitter, e.RetryPeriod))
	}
	if e.RetryPeriod <= 0 {
		p.add("leader-election-retry-period", fmt.Errorf("%s: want more than 0", e.RetryPeriod))
	}
	return e
}
