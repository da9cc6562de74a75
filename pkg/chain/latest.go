package chain

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// latest has what counts of the objects of a source, as they were read last. It may be used by several goroutines.
type latest struct {
	mu      sync.Mutex
	objects map[referent.Key]read
}

// read is one object.
type read struct {
	uid    types.UID
	object *referent.Object
}

// set takes an object, and reports whether something else counted of the same object before.
func (l *latest) set(uid types.UID, object *referent.Object) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects == nil {
		l.objects = map[referent.Key]read{}
	}
	before, ok := l.objects[object.Key()]
	l.objects[object.Key()] = read{uid, object}
	return ok && before.uid == uid && !before.object.Equal(object)
}

// get returns nil for an object that is not there.
func (l *latest) get(key referent.Key) *referent.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.objects[key].object
}

// drop forgets an object that has been deleted, unless another one of its name has been read since.
func (l *latest) drop(key referent.Key, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects[key].uid == uid {
		delete(l.objects, key)
	}
}
