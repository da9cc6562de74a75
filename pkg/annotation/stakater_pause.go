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
	value, ok := r.source.Workload[key]
	if !ok {
		if _, onTemplate := r.source.Template[key]; onTemplate {
			r.report("annotation %q on the pod template has no effect: put it into metadata.annotations of the workload", key)
		}
		return 0
	}
	period := PausePeriod(value)
	if period == 0 {
		r.report("annotation %q: %s is not a duration above 0 and up to 168h, such as 30s or 5m, and reloads do not pause the Deployment",
			key, reference.Quote(value))
	}
	return period
}

// PausePeriod returns the pause period that an annotation asks for; 0 if it cannot be read.
func PausePeriod(value string) time.Duration {
	period, err := time.ParseDuration(value)
	if err != nil || period <= 0 || period > longestPause {
		return 0
	}
	return period
}
