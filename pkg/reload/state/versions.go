package state

import (
	"maps"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Versions has the resourceVersions since which workloads are as they are: no later write has changed the annotations that select
// config objects, the Record, or the spec. A config object that was created later than that is in no Record, and was not there when
// the pods started. A workload without a Record is as it is since it is in sight: since the first listing of its kind, or since its
// namespace is in scope.
type Versions struct{ perWorkload[string] }

// Changed records the version of a workload that differs from the one before it.
func (v *Versions) Changed(key workload.Key, version string) {
	v.with(key, func(e *string) { *e = version })
}

// NotBefore moves an earlier version to a later one.
func (v *Versions) NotBefore(key workload.Key, version string) {
	v.find(key, func(e *string) {
		if reference.Later(version, *e) {
			*e = version
		}
	})
}

// NotAfter moves a later version to an earlier one.
func (v *Versions) NotAfter(key workload.Key, version string) {
	v.find(key, func(e *string) {
		if reference.Later(*e, version) {
			*e = version
		}
	})
}

// Since returns the version; empty if it is not known.
func (v *Versions) Since(key workload.Key) string { return v.get(key) }

// compared has the Records to be adopted that were compared with a live read, until they are stored: each attempt to store one would cost
// the reads again.
type compared struct{ perWorkload[uint64] }

// Set records that a Record has nothing older than what was stored at a version.
func (c *compared) Set(key workload.Key, version, record string) {
	c.with(key, func(e *uint64) { *e = DigestOf(version + " " + record) })
}

// Is reports whether that is so.
func (c *compared) Is(key workload.Key, version, record string) bool {
	return c.get(key) == DigestOf(version+" "+record)
}

// Creations has the resourceVersions at which workloads were created, of those that came while the loop watched, without a Record. Their
// pods start with what the configuration is at that time, which may be another one when the loop reads it: in direct mode, where no
// webhook stamps the creation, a change right behind it would be adopted and missed otherwise.
type Creations struct{ perWorkload[creation] }

// creation is that of a workload: its version, and the states that config objects had then, as far as they were read. The Record of them
// may be stored when they cannot be read any more.
type creation struct {
	version string
	found   map[reference.Ref]digest.State
}

// Created records the creation of a workload.
func (b *Creations) Created(key workload.Key, version string) {
	b.with(key, func(e *creation) { *e = creation{version: version} })
}

// Version returns the resourceVersion of the creation; empty if it is not known, or has been recorded.
func (b *Creations) Version(key workload.Key) string { return b.get(key).version }

// Keep keeps the states that config objects had at the creation at a version.
func (b *Creations) Keep(key workload.Key, version string, found map[reference.Ref]digest.State) {
	b.find(key, func(e *creation) {
		if e.version == version {
			e.found = maps.Clone(found)
		}
	})
}

// Found returns those of the states that were kept that have an Entry under a key, or are absent.
func (b *Creations) Found(key workload.Key, under digest.KeyID) map[reference.Ref]digest.State {
	found := map[reference.Ref]digest.State{}
	b.find(key, func(e *creation) {
		for ref, state := range e.found {
			if _, ok := state.Entry(under); ok || state.Absent {
				found[ref] = state
			}
		}
	})
	return found
}

// ForgetBefore forgets a creation that was before a version.
func (b *Creations) ForgetBefore(key workload.Key, version string) {
	if created := b.Version(key); reference.Later(version, created) {
		b.Recorded(key, created)
	}
}

// Recorded forgets a creation whose configuration has been recorded, but not that of another workload of the name, created since.
func (b *Creations) Recorded(key workload.Key, version string) {
	b.drop(key, func(e *creation) bool { return e.version == version })
}
