package chain

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// latest has what counts of the objects of a source, as they were read last. It may be used by several goroutines.
type latest struct {
	// most is how many references are kept of a namespace.
	most int

	mu      sync.Mutex
	objects map[referent.Key]read
	// references are those of the objects of each namespace.
	references map[string]references
}

// references are how many references there are, and how many of them are kept: not more than a graph may have of a namespace, so that
// objects of any number must not fill the memory.
type references struct{ all, kept int }

func (r references) plus(o read, by int) references {
	if o.object == nil {
		return r
	}
	return references{r.all + by*o.references, r.kept + by*o.object.References()}
}

// read is one object.
type read struct {
	uid    types.UID
	object *referent.Object
	// references is how many it has. The object has none where they are left out.
	references int
}

// set takes an object, and returns what is kept of it, and whether something else counted of the same object before.
func (l *latest) set(uid types.UID, object *referent.Object) (kept *referent.Object, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.objects == nil {
		l.objects, l.references = map[referent.Key]read{}, map[string]references{}
	}
	before := l.objects[object.Key()]
	others := l.references[object.Key().Namespace].plus(before, -1)
	now := read{uid, object, object.References()}
	if others.kept+now.references > l.most {
		now.object = object.WithoutReferences()
	}
	l.objects[object.Key()] = now
	l.references[object.Key().Namespace] = others.plus(now, +1)
	return now.object, before.object != nil && before.uid == uid && !before.object.Equal(now.object)
}

// fits reports whether references of a namespace are left out that could be kept now.
func (l *latest) fits(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.references[namespace]
	return r.kept < r.all && r.all <= l.most
}

// len is the number of objects.
func (l *latest) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.objects)
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
	gone, ok := l.objects[key]
	if !ok || gone.uid != uid {
		return
	}
	delete(l.objects, key)
	left := l.references[key.Namespace].plus(gone, -1)
	if l.references[key.Namespace] = left; left == (references{}) {
		delete(l.references, key.Namespace)
	}
}
