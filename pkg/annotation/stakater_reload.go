package annotation

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// longestPause bounds a pause period: the pods of a Deployment do not get a new template for as long.
const longestPause = 7 * 24 * time.Hour

// pausePeriod reads how long a Deployment is paused with a reload. A value that cannot be read pauses nothing.
func (r *stakaterReading) pausePeriod() time.Duration {
	key := r.Keys.PausePeriod
	value, ok := r.ofWorkload(key)
	if !ok {
		return 0
	}
	period := PausePeriod(value)
	if period == 0 {
		r.report("annotation %q: %s is not a duration above 0 and up to 168h, such as 30s or 5m, and reloads do not pause the Deployment",
			key, reference.Quote(value))
	}
	return period
}

// ofWorkload returns the value of an annotation that is read on the workload only.
func (r *stakaterReading) ofWorkload(key string) (value string, ok bool) {
	value, ok = r.source.Workload[key]
	if _, misplaced := r.source.Template[key]; misplaced && !ok {
		r.addProblems(onTemplate(key))
	}
	return value, ok
}

// PausePeriod returns the pause period that an annotation asks for; 0 if it cannot be read.
func PausePeriod(value string) time.Duration {
	period, err := time.ParseDuration(value)
	if err != nil || period <= 0 || period > longestPause {
		return 0
	}
	return period
}

// restart reads how an Argo Rollout is reloaded: by its pod template, which is what other values mean too, or by a restart.
func (r *stakaterReading) restart() bool {
	switch value, ok := r.ofWorkload(rolloutStrategy); {
	case !ok, value == "rollout":
		return false
	case value == "restart":
		return true
	default:
		r.report(`annotation %q: %s is unknown and counts as "rollout": write "rollout" or "restart"`, rolloutStrategy, reference.Quote(value))
		return false
	}
}

// ReloadStrategy is what a reload writes on a pod template besides the hash, for compatibility with Stakater's Reloader.
// The hash and the Record are maintained under each of them.
type ReloadStrategy string

const (
	// ConfigHash writes nothing besides the hash. It is the default.
	ConfigHash ReloadStrategy = "config-hash"
	// Annotations writes reloader.stakater.com/last-reloaded-from.
	Annotations ReloadStrategy = "annotations"
	// EnvVars sets STAKATER_<NAME>_<KIND> in the container that uses the object.
	EnvVars ReloadStrategy = "env-vars"
)
