package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Policy is what the flags of an installation say about what restarts a workload, and what a restart writes.
type Policy struct {
	// The fields are those of the Options.
	AutoReloadAll, ReloadOnCreate, ReloadOnDelete, ReloadMissingRequired, Revision bool
	Strategy                                                                       string
	// Clear is false while the replicas do not agree.
	Clear bool
}

// policy has how the flags about restarts have changed.
type policy struct {
	// changed is when they changed last, mixed means that the replicas do not agree since then.
	changed time.Time
	mixed   bool
	// strategies means that a strategy may have written on templates that the flags of now do not name.
	strategies bool
	// strategy and triggers are the last versions at which the strategy changed, or what counts as a change.
	strategy, triggers int64
	// restyles and retriggers mean that these change while the replicas do not agree.
	restyles, retriggers bool
}

// settled reports whether a request that arrived at a moment surely is of a process that goes by the flags of now.
func (p *policy) settled(arrived time.Time) bool {
	return !p.mixed && (p.changed.IsZero() || arrived.Sub(p.changed) > chance)
}

// repolicy records other flags about restarts. Changing them restarts nothing, but for deletions that count from then on. While replicas do
// not agree, a reload is due only if it is so by both flags.
func (l *ledger) repolicy(at time.Time, p Policy) {
	o, s := &l.options, &l.policy
	if p.Clear && !s.mixed {
		return
	}
	l.count("policy changes")
	s.changed, s.mixed = at, !p.Clear
	s.restyles = s.restyles || o.Strategy != p.Strategy
	s.retriggers = s.retriggers || o.AutoReloadAll != p.AutoReloadAll ||
		o.ReloadOnCreate != p.ReloadOnCreate || o.ReloadOnDelete != p.ReloadOnDelete
	o.Revision = o.Revision || p.Revision // what was stamped by either may stay
	if s.restyles {
		s.strategy, s.strategies = l.version, true
	}
	if s.retriggers {
		s.triggers = l.version
	}
	if p.Clear {
		s.restyles, s.retriggers = false, false
		o.AutoReloadAll, o.Strategy = p.AutoReloadAll, p.Strategy
		o.ReloadOnCreate, o.ReloadOnDelete, o.ReloadMissingRequired = p.ReloadOnCreate, p.ReloadOnDelete, p.ReloadMissingRequired
	} else {
		o.weaken(p)
	}
	l.retrack(world.Commit{At: at, Version: l.version})
	l.rereadScopes(at, l.version)
}

// weaken leaves what holds by both flags.
func (o *Options) weaken(p Policy) {
	o.ReloadOnCreate, o.ReloadOnDelete = o.ReloadOnCreate && p.ReloadOnCreate, o.ReloadOnDelete && p.ReloadOnDelete
	o.ReloadMissingRequired = o.ReloadMissingRequired && p.ReloadMissingRequired
	if o.Strategy != p.Strategy {
		o.Strategy = ""
	}
}
