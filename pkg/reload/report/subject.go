package report

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Subject is a workload that Events are about, and what its last reload has done besides the stamp.
type Subject struct {
	Key     workload.Key
	Object  workload.Summary
	Managed stamp.Managed
	// InPlace is as in stamp.View.
	InPlace string
	// PausedFor is the period for which the reload has paused the workload; 0 if it has not.
	PausedFor time.Duration
	// Ran is the Job that the reload has made; empty if none.
	Ran string
	// Unwritten says that the last reload is not stored in the annotations: what is known of it was found by comparing the template.
	Unwritten bool
}

// effect says what the last reload has done, as its Event has it.
func (s Subject) effect(last record.LastReload) string {
	switch {
	case last.Restarted:
		return "restarted"
	case s.Object.Kind.CreateOnly:
		return "created again"
	case s.Ran != "":
		return stamped + ", and the CronJob run at once as Job " + s.Ran
	case s.pending() != "":
		return stamped + ", rollout pending (" + s.pending() + ")"
	default:
		return stamped
	}
}

// stamped is what most reloads do.
const stamped = "pod template updated"

// pending says why the pods do not restart yet; empty if they do.
func (s Subject) pending() string {
	if s.PausedFor > 0 {
		return fmt.Sprintf("paused for %s", s.PausedFor)
	}
	return cmp.Or(s.Object.Pending(), s.InPlace)
}
