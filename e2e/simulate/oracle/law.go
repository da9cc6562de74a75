package oracle

import (
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// law judges one promise, or one part of it. A law reads the ledger, keeps a state of its own, and hears of these moments.
type law interface {
	// storing comes before a change is recorded. The ledger knows its time and version, and nothing else of it.
	storing(c world.Commit)
	// stamped comes after a change of an existing pod template was recorded, and before stored.
	stamped(r restamp)
	// stored comes after a change was recorded.
	stored(c world.Commit)
	// request comes with each request of a user or of the program, reply with each answer.
	request(call *world.Call)
	reply(r world.Reply)
	// succeeded comes when another replica leads.
	succeeded()
	// restored comes after all changes by which the state of a version was restored.
	restored(back int64)
	// scraped brings the metrics of a replica.
	scraped(client string, families map[string]*dto.MetricFamily, at time.Time)
	// watch comes at least every second for each workload that exists, tick once after that. What happens at this moment is not
	// known yet.
	watch(w *workload, now time.Time)
	tick(now time.Time)
	// settled comes for each workload there ever was, when nothing is pending and all faults have ended long ago, quiet once after that.
	settled(w *workload, now time.Time)
	quiet(now time.Time)
	// owes reports whether the program still has something to do.
	owes(now time.Time) bool
}

// passive is the part of a law that does not react.
type passive struct{}

func (passive) storing(world.Commit)                                    {}
func (passive) stamped(restamp)                                         {}
func (passive) stored(world.Commit)                                     {}
func (passive) request(*world.Call)                                     {}
func (passive) reply(world.Reply)                                       {}
func (passive) succeeded()                                              {}
func (passive) restored(int64)                                          {}
func (passive) scraped(string, map[string]*dto.MetricFamily, time.Time) {}
func (passive) watch(*workload, time.Time)                              {}
func (passive) tick(time.Time)                                          {}
func (passive) settled(*workload, time.Time)                            {}
func (passive) quiet(time.Time)                                         {}
func (passive) owes(time.Time) bool                                     { return false }

// restamp is a change of the pod template of a workload that had one before.
type restamp struct {
	workload *workload
	commit   world.Commit
	// before and stamp are the stamps, old and template the templates.
	before, stamp *stamp
	old, template world.Object
}

// byProgram reports whether the program has changed what decides about a restart.
func (r restamp) byProgram() bool { return r.stamp.program && r.stamp.replacesPods(r.before) }
