package webhook

import (
	"github.com/pod-reloader/pod-reloader/pkg/pause"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// keptPause returns the begin of a pause of ours that a write drops while it leaves the Deployment paused, as an operator does whose PUT
// has its own annotations only. It goes by the two versions alone, whatever the rule decides, and gives way where the budget is used up.
func (h *Handler) keptPause(current stamp.View, wr write, managed stamp.Managed) []stamp.Annotation {
	key := h.options.PausedAt
	if key == "" || wr.old == nil || !wr.current.Kind.Pausable() {
		return nil
	}
	stored := pauseOf(*wr.old, key)
	begin := stamp.Annotation{Key: key, Value: stored.Since}
	if !stored.IsDroppedBy(pauseOf(wr.current, key)) || !current.Fits(managed, begin) {
		return nil
	}
	return []stamp.Annotation{begin}
}

// pauseOf returns what a version of a workload says about its pause, but for the period.
func pauseOf(o workload.Object, key string) pause.State {
	since, ours := o.Annotations()[key]
	return pause.State{Paused: o.Paused(), Since: since, Ours: ours}
}
