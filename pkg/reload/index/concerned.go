package index

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Enter replaces what a workload asks for, and returns the names that it did not ask for before. What it selects need not be
// resolved: it is indexed by all that may be tracked.
func (x *Index) Enter(key workload.Key, intent annotation.Intent) (added []reference.Ref) {
	x.patterns.Set(key, key.Namespace, intent.Patterns())
	return x.Set(key, intent.Candidates())
}

// Concerned returns the workloads that a config event may concern, each once. Where it takes long to find those whose patterns match, it
// returns the others, and later is called with those by another goroutine. Events of what was there before the watch began only teach
// the index its name: such objects are compared when the loop starts.
func (x *Index) Concerned(e configstate.Event, later func([]workload.Key)) []workload.Key {
	matching := x.patterns.Put
	if e.Type == configstate.Deleted {
		x.patterns.Put(e.Namespace, e.Ref, nil) // no watch may have shown it: a workload that has read it waits for its end all the same
		matching = x.patterns.Remove
	}
	if e.Initial {
		matching(e.Namespace, e.Ref, nil)
		return nil
	}
	keys := matching(e.Namespace, e.Ref, later)
	named := x.Trackers(e.Namespace, e.Ref)
	if len(keys) == 0 {
		return named
	}
	both := make(map[workload.Key]bool, len(keys))
	for _, key := range keys {
		both[key] = true
	}
	return append(slices.DeleteFunc(named, func(key workload.Key) bool { return both[key] }), keys...)
}
