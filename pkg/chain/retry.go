package chain

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// retryInterval is the shortest time between a refusal and the next attempt that Retry causes.
const retryInterval = time.Second

// refusals are when the API server last refused a config object, or the list of a resource in a namespace: that key has no name.
type refusals map[referent.Key]time.Time

// set takes the last answer of the API server; zero is one that does not refuse.
func (r refusals) set(key referent.Key, refused time.Time) {
	if refused.IsZero() {
		delete(r, key)
	} else {
		r[key] = refused
	}
}

// of returns what was refused and holds a node.
func (r refusals) of(hold *referent.Hold) []referent.Key {
	if hold.Lacking == nil {
		if _, ok := r[hold.Node]; ok {
			return []referent.Key{hold.Node}
		}
		return nil
	}
	var keys []referent.Key
	lacking := hold.Lacking.GVR.GroupResource()
	for key := range r {
		// Objects of another resource that refer to the node can be in any namespace.
		in := key.Namespace == "" || key.Namespace == hold.Node.Namespace || lacking != hold.Node.GroupResource()
		if key.Name == "" && key.GroupResource() == lacking && in {
			keys = append(keys, key)
		}
	}
	return keys
}

// at returns when what holds a node was refused, the earliest of several; zero if it was not.
func (r refusals) at(hold *referent.Hold) (first time.Time) {
	for _, key := range r.of(hold) {
		if at := r[key]; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// refusedBelow returns what was refused and holds custom resources.
func (a *graphState) refusedBelow(namespace string, refs []reference.Ref) (refused []referent.Key) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.graph == nil || len(a.history.refused) == 0 {
		return nil
	}
	for _, ref := range refs {
		if key, ok := a.key(namespace, ref); ok && a.graph.Hold(key) != nil {
			refused = append(refused, a.history.refused.of(a.graph.Hold(key))...)
		}
	}
	return refused
}

// refusedAt is when a key was refused; false if it is not.
func (a *graphState) refusedAt(key referent.Key) (at time.Time, refused bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	at, refused = a.history.refused[key]
	return at, refused
}
