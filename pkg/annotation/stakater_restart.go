package annotation

import "github.com/pod-reloader/pod-reloader/pkg/reference"

// restart reads how an Argo Rollout is reloaded: by its pod template, which is what other values mean too, or by a restart.
func (r *stakaterReading) restart() bool {
	switch value, ok := r.source.Workload[rolloutStrategy]; {
	case !ok, value == "rollout":
		return false
	case value == "restart":
		return true
	default:
		r.report(`annotation %q: %s is unknown and counts as "rollout": write "rollout" or "restart"`, rolloutStrategy, reference.Quote(value))
		return false
	}
}
