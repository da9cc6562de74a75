package state

import "github.com/pod-reloader/pod-reloader/pkg/workload"

// Versions has the resourceVersions since which workloads are as they are: no later write has changed the annotations that select
// config objects, the Record, or the spec. A config object that was created later than that is in no Record, and was not there when
// the pods started.
type Versions struct{ perWorkload[string] }

// Changed records the version of a workload that differs from the one before it.
func (v *Versions) Changed(key workload.Key, version string) {
	v.with(key, func(e *string) { *e = version })
}

// Since returns the version; empty if it is not known.
func (v *Versions) Since(key workload.Key) (version string) {
	v.find(key, func(e *string) { version = *e })
	return version
}
