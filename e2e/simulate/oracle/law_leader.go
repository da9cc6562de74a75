package oracle

import "github.com/pod-reloader/pod-reloader/e2e/simulate/world"

// judgeLeader is the law "leader": of several replicas, only the one that holds the lease writes workloads. A replica that has
// just lost the lease may have a write under way.
func (o *Oracle) judgeLeader(w *workload, call *world.Call) {
	calm, known := o.calmSince(w)
	if !known || call.Arrived.Sub(later(calm, o.leaderSince)) < recovery {
		return
	}
	o.count("leaders judged")
	if call.Client != o.leader {
		o.violate(call.Arrived, broken{"leader", w.id.String(), call.Verb}, "%s sent a %s at %s, but the lease is held by %q since %s",
			call.Client, call.Verb, o.when(call.Arrived), o.leader, o.when(o.leaderSince))
	}
}
