package configstate

import (
	"slices"
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// maxDigests bounds the digest cache, in objects. Only objects that a workload tracks are in it; one is about 300 B.
const maxDigests = 50_000

// digests is the digest cache: the Entries of objects that were read. It is safe for concurrent use, and never held
// during I/O.
type digests struct {
	limit int

	// mu guards what follows. Nothing else is locked while it is held.
	mu      sync.Mutex
	entries map[objectKey]*kept
	// oldest and newest are the ends of the list of all that are kept.
	oldest, newest *kept
}

// kept is the last state that was read of an object. All but its place in the list is immutable.
type kept struct {
	key                  objectKey
	uid, resourceVersion string
	sha1                 string // empty where it is not computed
	// entries is a list and not a map, which takes several times the memory: a ring has one key or two.
	entries      []entry
	older, newer *kept
}

// entry is an Entry with its key.
type entry struct {
	id    digest.KeyID
	value digest.Entry
}

func newDigests(limit int) *digests {
	return &digests{entries: make(map[objectKey]*kept), limit: limit}
}

// put keeps a state in place of what was there, and drops the oldest where there are too many.
func (d *digests) put(k objectKey, state digest.State) {
	n := &kept{key: k, uid: state.UID, resourceVersion: state.ResourceVersion, sha1: state.SHA1, entries: make([]entry, 0, len(state.Entries))}
	for id, value := range state.Entries {
		n.entries = append(n.entries, entry{id, value})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropLocked(k)
	d.entries[k] = n
	if n.older = d.newest; n.older != nil {
		n.older.newer = n
	} else {
		d.oldest = n
	}
	d.newest = n
	for len(d.entries) > d.limit {
		d.dropLocked(d.oldest.key)
	}
}

// drop forgets an object, and reports whether it was known.
func (d *digests) drop(k objectKey) (known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known = d.entries[k]
	d.dropLocked(k)
	return known
}

// dropOther forgets an object unless it was read at this version. After the restore of a backup, a version that was read before can come
// again with another content.
func (d *digests) dropOther(k objectKey, resourceVersion string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.entries[k]; ok && n.resourceVersion != resourceVersion {
		d.dropLocked(k)
	}
}

// read returns the objects that are known, out of those that pick selects, in any order.
func (d *digests) read(pick func(objectKey) bool) []objectKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	var keys []objectKey
	for k := range d.entries {
		if pick(k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (d *digests) dropLocked(k objectKey) {
	n, ok := d.entries[k]
	if !ok {
		return
	}
	delete(d.entries, k)
	if n.older != nil {
		n.older.newer = n.newer
	} else {
		d.oldest = n.newer
	}
	if n.newer != nil {
		n.newer.older = n.older
	} else {
		d.newest = n.older
	}
}

// get returns the state that was last read of an object, if it has an Entry under every key of the ring.
func (d *digests) get(k objectKey, ring []digest.Key) (digest.State, bool) {
	d.mu.Lock()
	n, ok := d.entries[k]
	d.mu.Unlock()
	if !ok || !n.complete(ring) {
		return digest.State{}, false
	}
	return n.state(), true
}

// at is get for one version of the object.
func (d *digests) at(k objectKey, uid, resourceVersion string, ring []digest.Key) (digest.State, bool) {
	d.mu.Lock()
	n, ok := d.entries[k]
	d.mu.Unlock()
	if !ok || n.uid != uid || n.resourceVersion != resourceVersion || !n.complete(ring) {
		return digest.State{}, false
	}
	return n.state(), true
}

func (n *kept) complete(ring []digest.Key) bool {
	return !slices.ContainsFunc(ring, func(key digest.Key) bool {
		return !slices.ContainsFunc(n.entries, func(e entry) bool { return e.id == key.ID })
	})
}

func (n *kept) state() digest.State {
	state := digest.State{
		UID: n.uid, ResourceVersion: n.resourceVersion, SHA1: n.sha1, Entries: make(map[digest.KeyID]digest.Entry, len(n.entries)),
	}
	for _, e := range n.entries {
		state.Entries[e.id] = e.value
	}
	return state
}
