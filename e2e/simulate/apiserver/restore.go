package apiserver

import (
	"slices"
	"sort"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// To the models and to the oracle, versions never go back: a restore is one version by which all objects change that were written since the
// snapshot. To clients, the versions go on from that of the snapshot, so that they see many of them a second time.

// place is where an object is among all.
type place struct {
	kind *kind
	name
}

// Restore brings the state of an earlier moment back, as the restore of etcd from a snapshot and the next start of the API server do. All
// watches break, requests that are under way store nothing, and watches cannot start before the snapshot: the watch cache of a server
// begins at its start. No state from before the last restore comes back. The changes are reported with world.Commit.Restored. It returns
// the version of the state that is back.
//
// Until ReuseVersions is called, no object gets a version that it has had in the lost state; other objects may get it.
func (s *Server) Restore(to time.Time) int64 {
	back := s.store.restore(to)
	for _, w := range s.Watches() {
		w.Break()
	}
	return back
}

// ReuseVersions has each object get the versions again that it has had in states that are lost, until the next restore.
func (s *Server) ReuseVersions() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.reuse = true
}

func (s *store) restore(to time.Time) (back int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	back = max(s.versionAt(to), s.firstLocked())
	s.lose(back)
	s.reuse = false
	s.version++
	s.shift += s.version - back
	s.restored, s.compacted = s.version, s.version
	// Workloads come before their pods, and these before what they read.
	for n := len(s.kinds) - 1; n >= 0; n-- {
		for _, r := range s.tables[s.kinds[n]].order {
			s.bringBack(s.kinds[n], r, back)
		}
	}
	return back
}

// versionAt returns the last version that was stored at a time or before. The caller holds mu.
func (s *store) versionAt(at time.Time) (version int64) {
	for _, t := range s.tables {
		if n := sort.Search(len(t.log), func(i int) bool { return t.log[i].at.After(at) }); n > 0 {
			version = max(version, t.log[n-1].then.version)
		}
	}
	return version
}

// lose records the versions after the one that is restored.
func (s *store) lose(back int64) {
	for k, t := range s.tables {
		for _, c := range t.log[sort.Search(len(t.log), func(i int) bool { return t.log[i].then.version > back }):] {
			at := place{k, c.name}
			s.lost[at] = append(s.lost[at], c.then.version-s.shift)
			slices.Sort(s.lost[at])
		}
	}
}

// bringBack restores one object.
func (s *store) bringBack(k *kind, r *record, back int64) {
	before, then := r.current(), r.at(back)
	if before == then || !before.live() && !then.live() {
		return
	}
	if !before.live() {
		before = nil
	}
	next := &item{kind: k, version: s.version, gone: true}
	if then.live() {
		next = &item{kind: k, version: s.version, typed: then.typed, spec: then.spec, status: then.status}
	} else {
		next.typed, next.spec, next.status = before.typed, before.spec, before.status
	}
	s.append(r.name, before, next)
	if s.onCommit == nil || k.Resource == world.CoreEvents { // which are the same as those of events.k8s.io
		return
	}
	c := world.Commit{At: time.Now(), Version: s.version, Key: keyOf(k, r.name), Restored: back}
	if before != nil {
		c.Old = before.object()
	}
	if next.live() {
		c.New = next.object()
	}
	s.onCommit(c)
}

// advance counts one more change. By other writes meanwhile, of objects that the model does not have, the version is one that the object
// has had in a lost state, or none of these.
func (s *store) advance(w write) {
	s.version++
	lost := s.lost[place{w.kind, w.at}]
	if len(lost) == 0 {
		return
	}
	i, is := slices.BinarySearch(lost, s.version-s.shift)
	switch {
	case s.reuse && i < len(lost):
		s.version = lost[i] + s.shift
	case !s.reuse:
		for is {
			s.version++
			_, is = slices.BinarySearch(lost, s.version-s.shift)
		}
	}
}

// shown returns a version as clients see it.
func (s *store) shown(version int64) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return version - s.shift
}

// textOf returns the resourceVersion of a version.
func (s *store) textOf(version int64) string { return formatVersion(s.shown(version)) }

// known returns the version of one that a client names; 0 stays what it is.
func (s *store) known(shown int64) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.knownLocked(shown)
}

func (s *store) knownLocked(shown int64) int64 {
	if shown == 0 {
		return 0
	}
	return shown + s.shift
}

// first returns the version of the first state that a server can still serve.
func (s *store) first() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.firstLocked()
}

func (s *store) firstLocked() int64 { return max(s.restored, 1) }

// restoredAt returns the version by which an earlier state was restored last; 0 if that never was.
func (s *store) restoredAt() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.restored
}
