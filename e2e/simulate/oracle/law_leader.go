package oracle

import (
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// leaderLaw is the law "leader".
type leaderLaw struct {
	*ledger
	passive
}

func (l *leaderLaw) request(call *world.Call) {
	if w := l.workloads[idOf(call.Key)]; w != nil && l.isProgram(call) && call.Write() {
		l.judge(w, call)
	}
}

// judge is the law "leader": of several replicas, only the one that holds the lease writes workloads. A replica that has
// just lost the lease may have a write under way.
func (l *leaderLaw) judge(w *workload, call *world.Call) {
	calm, known := l.calmSince(w)
	if !known || call.Arrived.Sub(later(calm, l.leaderSince)) < recovery {
		return
	}
	l.count("leaders judged")
	if !l.leads(call.Client) {
		l.violate(call.Arrived, broken{"leader", w.id.String(), call.Verb}, "%s sent a %s at %s, but the lease is held by %q since %s",
			call.Client, call.Verb, l.when(call.Arrived), l.leaders[l.options.Second(call.Client)], l.when(l.leaderSince))
	}
}
