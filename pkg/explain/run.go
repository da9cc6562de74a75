package explain

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// RunMayWait reports whether the run of a CronJob for its last reload may have to wait for other Jobs, so that the Input needs those of the
// namespace. A run that was refused does not wait.
func RunMayWait(in Input) bool {
	if !in.Object.Kind.Schedules() || in.NotifyOnly || notHandledReason(in) != "" {
		return false
	}
	last, _ := lastReloads(in)
	refused := slices.ContainsFunc(warnings(in, last), func(w Warning) bool { return w.Reason == reasonRunRefused })
	return !refused && cronrun.CronJob{Object: in.Object}.MayWaitForLast(in.View)
}

// reasonRunRefused is that of the Warning that a CronJob is not run for a reload.
const reasonRunRefused = "RunForbidden"

// run says that the run of a CronJob waits for other Jobs; empty if it is not known to wait.
func run(in Input) string {
	if !RunMayWait(in) {
		return ""
	}
	active := cronrun.CronJob{Object: in.Object}.WaitsFor(in.View, in.Jobs)
	if len(active) == 0 {
		return ""
	}
	return "waits until no other Job is active (concurrencyPolicy: Forbid): " + reference.List(active, reference.MaxNamed)
}
