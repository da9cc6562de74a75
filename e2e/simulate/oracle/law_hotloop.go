package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// burst is how many writes of one workload a replica may send within spell. A client that waits between its attempts, from
	// 25 ms on and each time twice as long, sends eight.
	burst = 30
	spell = time.Second
)

// writes has when each replica last wrote a workload.
type writes map[[2]string][]time.Time

// judgeHotLoop is the law "hot-loop": a replica waits between its attempts at a workload, also where each of its own writes
// wakes it up.
func (o *Oracle) judgeHotLoop(w *workload, call *world.Call) {
	if o.timingOf(call.Client).refractory == 0 {
		return // each change of its configuration may restart it at once
	}
	key := [2]string{call.Client, w.id.String()}
	times := append(o.writes[key], call.Arrived)
	if len(times) <= burst {
		o.writes[key] = times
		return
	}
	times = times[1:]
	o.writes[key] = times
	if lasted := times[burst-1].Sub(times[0]); lasted < spell {
		o.violate(call.Arrived, broken{"hot-loop", w.id.String(), call.Verb}, "%s wrote it %d times within %s, until %s",
			call.Client, burst, lasted.Round(time.Millisecond), o.when(call.Arrived))
		o.looping = true
	}
}

// Looping reports whether the program was found in a hot loop: there is no sense in going on.
func (o *Oracle) Looping() bool { return o.looping }
