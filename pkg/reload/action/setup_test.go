package action

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// newActions returns Actions of a process that leads, whose Events out gets.
func newActions(o Options, out report.Sender) *Actions {
	if o.Gather.Now == nil {
		o.Gather.Now = time.Now
	}
	leads := &queue.Leadership{}
	leads.Begin(o.Gather.Now().Add(-time.Minute))
	o.State, o.Backoff, o.Queue = &state.State{}, state.NewBackoff(), queue.New(leads, o.Gather.Now)
	o.Gather.Births = &o.State.Births
	o.Events = report.New(report.Options{Out: out, Leads: leads, State: o.State, Now: o.Gather.Now})
	return New(o)
}
