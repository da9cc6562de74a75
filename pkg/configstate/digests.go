package configstate

import (
	"container/list"
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// maxDigests bounds the digest cache, in objects. Only objects that somebody depends on are in it; one is about 400 B.
const maxDigests = 50_000

// digests is the digest cache: the Entries of objects that were read. It is safe for concurrent use, and never held
// during I/O.
type digests struct {
	mu      sync.Mutex
	entries map[key]*list.Element // of *kept
	age     list.List             // oldest in front
	limit   int
}

// kept is the last state that was read of an object. It is immutable.
type kept struct {
	key   key
	state digest.State
}

func newDigests(limit int) *digests {
	return &digests{entries: make(map[key]*list.Element), limit: limit}
}

// put keeps a state in place of what was there, and drops the oldest where there are too many.
func (d *digests) put(k key, state digest.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.entries[k]; ok {
		d.age.Remove(old)
	}
	d.entries[k] = d.age.PushBack(&kept{key: k, state: state})
	for len(d.entries) > d.limit {
		d.dropLocked(d.age.Front().Value.(*kept).key)
	}
}

// drop forgets an object.
func (d *digests) drop(k key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropLocked(k)
}

func (d *digests) dropLocked(k key) {
	if e, ok := d.entries[k]; ok {
		d.age.Remove(e)
		delete(d.entries, k)
	}
}

// get returns the state that was last read of an object, if it has an Entry under every key of the ring.
func (d *digests) get(k key, ring []digest.Key) (digest.State, bool) {
	d.mu.Lock()
	e, ok := d.entries[k]
	d.mu.Unlock()
	if !ok {
		return digest.State{}, false
	}
	state := e.Value.(*kept).state
	for _, key := range ring {
		if _, ok := state.Entries[key.ID]; !ok {
			return digest.State{}, false
		}
	}
	return state, true
}

// at is get for one version of the object.
func (d *digests) at(k key, uid, resourceVersion string, ring []digest.Key) (digest.State, bool) {
	state, ok := d.get(k, ring)
	return state, ok && state.UID == uid && state.ResourceVersion == resourceVersion
}
