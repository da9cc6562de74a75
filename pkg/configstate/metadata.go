package configstate

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// giveUpSync is how long a watch that fails holds up Synced.
const giveUpSync = time.Minute

// anytime is for what a watch delivers: it is taken in whatever was delivered before.
func anytime(uint64) bool { return true }

// put takes in an object, if fresh says so of what its watch has delivered so far.
func (s *Store) put(w *watcher, meta *metav1.PartialObjectMetadata, fresh func(delivered uint64) bool) {
	s.mu.Lock()
	if !fresh(s.delivered[w]) {
		s.mu.Unlock()
		return
	}
	at := space{w.kind, meta.Namespace}
	objects := s.objects[at]
	if objects == nil {
		objects = make(map[string]object)
		s.objects[at] = objects
	}
	kind, changed := difference(objects, meta)
	objects[meta.Name] = objectOf(meta)
	s.delivered[w]++
	initial := !s.syncedLocked()
	s.mu.Unlock()
	if changed {
		s.tell(s.event(w, meta.Namespace, meta.Name, kind, initial))
	}
}

// difference tells what an object's metadata is to those that were known.
func difference(known map[string]object, meta *metav1.PartialObjectMetadata) (kind EventType, changed bool) {
	old, ok := known[meta.Name]
	if !ok {
		return Added, true
	}
	return Modified, old.uid != string(meta.UID) || old.resourceVersion != meta.ResourceVersion
}

func objectOf(meta *metav1.PartialObjectMetadata) object {
	o := object{uid: string(meta.UID), resourceVersion: meta.ResourceVersion}
	if len(meta.Annotations)+len(meta.Labels) > 0 {
		o.own = &own{meta.Annotations, meta.Labels}
	}
	return o
}

// remove takes in that an object is gone, if fresh says so of what its watch has delivered so far.
func (s *Store) remove(w *watcher, meta *metav1.PartialObjectMetadata, fresh func(delivered uint64) bool) {
	s.mu.Lock()
	if !fresh(s.delivered[w]) {
		s.mu.Unlock()
		return
	}
	at := space{w.kind, meta.Namespace}
	_, known := s.objects[at][meta.Name]
	delete(s.objects[at], meta.Name)
	if len(s.objects[at]) == 0 {
		delete(s.objects, at)
	}
	s.delivered[w]++
	initial := !s.syncedLocked()
	s.mu.Unlock()
	s.digests.drop(key{meta.Namespace, reference.Ref{Kind: w.kind, Name: meta.Name}})
	if known {
		s.tell(s.event(w, meta.Namespace, meta.Name, Deleted, initial))
	}
}

// replace takes in a listing in place of all that the watch had delivered before.
func (s *Store) replace(w *watcher, metas []*metav1.PartialObjectMetadata) {
	fresh := make(map[space]map[string]object)
	for _, meta := range metas {
		at := space{w.kind, meta.Namespace}
		if fresh[at] == nil {
			fresh[at] = make(map[string]object)
		}
		fresh[at][meta.Name] = objectOf(meta)
	}

	s.mu.Lock()
	initial := !s.syncedLocked()
	var events []Event
	for _, meta := range metas {
		if kind, changed := difference(s.objects[space{w.kind, meta.Namespace}], meta); changed {
			events = append(events, s.event(w, meta.Namespace, meta.Name, kind, initial))
		}
	}
	for _, k := range s.takeOutLocked(w, fresh) {
		events = append(events, s.event(w, k.namespace, k.ref.Name, Deleted, initial))
	}
	maps.Copy(s.objects, fresh)
	s.status[w] = progress{synced: true}
	s.delivered[w]++
	s.mu.Unlock()

	for _, event := range events {
		if event.Type == Deleted {
			s.digests.drop(key{event.Namespace, event.Ref})
		}
		s.tell(event)
	}
	s.announce()
}

// takeOutLocked forgets all that a watch had delivered, and returns what is not in the fresh listing.
func (s *Store) takeOutLocked(w *watcher, fresh map[space]map[string]object) []key {
	var gone []key
	for at, objects := range s.objects {
		if at.kind != w.kind || w.namespace != "" && at.namespace != w.namespace {
			continue
		}
		for name := range objects {
			if _, ok := fresh[at][name]; !ok {
				gone = append(gone, key{at.namespace, reference.Ref{Kind: at.kind, Name: name}})
			}
		}
		delete(s.objects, at)
	}
	return gone
}

// attempted takes in that a watch could not list its objects. One that fails for long counts as refused, so that the rest
// goes on: what it does not know is read where it is needed.
func (s *Store) attempted(w *watcher, refused bool) {
	s.mu.Lock()
	if p := s.status[w]; !p.synced {
		now := time.Now()
		if p.failing.IsZero() {
			p.failing = now
		}
		p.refused = refused || now.Sub(p.failing) >= giveUpSync
		s.status[w] = p
	}
	s.mu.Unlock()
	s.announce()
}

// syncedLocked tells whether the Store is synced, or about to announce it.
func (s *Store) syncedLocked() bool {
	select {
	case <-s.synced:
		return true
	default:
	}
	for _, w := range s.watchers {
		if p := s.status[w]; !p.synced && !p.refused {
			return false
		}
	}
	return true
}

// announce closes the channel that Synced looks at, once the events of every listing have been told.
func (s *Store) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Synced() && s.syncedLocked() {
		close(s.synced)
	}
}

func (s *Store) event(w *watcher, namespace, name string, kind EventType, initial bool) Event {
	return Event{
		Namespace: namespace, Ref: reference.Ref{Kind: w.kind, Name: name},
		Type: kind, Received: s.now(), Initial: initial,
	}
}

func (s *Store) tell(event Event) {
	for _, handler := range s.handlers {
		handler(event)
	}
}
