package configstate

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// giveUpSync is how long a failing watch delays Synced.
const giveUpSync = time.Minute

// origin is where something comes from: a read that began when the watch had delivered so much, or the watch, which is the zero value.
type origin struct {
	read      bool
	delivered uint64
}

// takesLocked reports whether something is taken in. What a read has found is not, if the watch has delivered anything since that may
// be newer. Reads do not count: those of other objects are under way at the same time.
func (s *Store) takesLocked(w *watcher, from origin) bool {
	if from.read {
		return s.delivered[w] == from.delivered
	}
	s.delivered[w]++
	return true
}

// put stores an object. Of a new one that the watch delivers, that is the creation.
func (s *Store) put(w *watcher, meta *metav1.PartialObjectMetadata, from origin) {
	s.mu.Lock()
	if !s.takesLocked(w, from) {
		s.mu.Unlock()
		return
	}
	at := scopeKey{w.kind, meta.Namespace}
	objects := s.objects[at]
	if objects == nil {
		objects = make(map[string]object)
		s.objects[at] = objects
	}
	kind, changed := difference(objects, meta)
	o := objectOf(meta)
	if kind != Added {
		o.created = objects[meta.Name].createdAs(meta)
	} else if !from.read {
		o.created = meta.ResourceVersion
	}
	objects[meta.Name] = o
	initial := s.beginLocked()
	s.mu.Unlock()
	defer s.end(initial)
	if changed {
		s.notify(s.event(w, meta, kind, initial))
	}
}

// difference returns how the metadata of an object differ from the known ones.
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

// createdAs returns the version of the creation of an object that is still as it was created, as far as the cache keeps it.
func (o object) createdAs(meta *metav1.PartialObjectMetadata) string {
	had := own{}
	if o.own != nil {
		had = *o.own
	}
	if o.uid != string(meta.UID) || !maps.Equal(had.annotations, meta.Annotations) || !maps.Equal(had.labels, meta.Labels) {
		return ""
	}
	return o.created
}

// remove deletes an object.
func (s *Store) remove(w *watcher, meta *metav1.PartialObjectMetadata, from origin) {
	s.mu.Lock()
	if !s.takesLocked(w, from) {
		s.mu.Unlock()
		return
	}
	at := scopeKey{w.kind, meta.Namespace}
	_, known := s.objects[at][meta.Name]
	delete(s.objects[at], meta.Name)
	if len(s.objects[at]) == 0 {
		delete(s.objects, at)
	}
	initial := s.beginLocked()
	s.mu.Unlock()
	defer s.end(initial)
	read := s.digests.drop(objectKey{meta.Namespace, reference.Ref{Kind: w.kind, Name: meta.Name}})
	if known || read {
		s.notify(s.event(w, meta, Deleted, initial))
	}
}

// replace stores a listing in place of all that the watch delivered before.
func (s *Store) replace(w *watcher, metas []*metav1.PartialObjectMetadata) {
	fresh := make(map[scopeKey]map[string]object)
	for _, meta := range metas {
		at := scopeKey{w.kind, meta.Namespace}
		if fresh[at] == nil {
			fresh[at] = make(map[string]object)
		}
		fresh[at][meta.Name] = objectOf(meta)
	}

	s.mu.Lock()
	initial := s.beginLocked()
	var events []Event
	for _, meta := range metas {
		if kind, changed := difference(s.objects[scopeKey{w.kind, meta.Namespace}], meta); changed {
			events = append(events, s.event(w, meta, kind, initial))
		}
	}
	gone := s.takeOutLocked(w, fresh)
	if !s.status[w].synced {
		gone = append(gone, s.readOnlyLocked(w, fresh, gone)...)
	}
	for _, k := range gone {
		unseen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.ref.Name}}
		events = append(events, s.event(w, unseen, Deleted, initial))
	}
	maps.Copy(s.objects, fresh)
	s.status[w] = progress{synced: true}
	s.delivered[w]++
	s.mu.Unlock()
	defer s.end(initial)

	for _, event := range events {
		if event.Type == Deleted {
			s.digests.drop(objectKey{event.Namespace, event.Ref})
		}
		s.notify(event)
	}
}

// readOnlyLocked returns what was read before a watch has listed its objects for the first time, and is in neither of two sets: of its
// end no watch says anything.
func (s *Store) readOnlyLocked(w *watcher, fresh map[scopeKey]map[string]object, gone []objectKey) []objectKey {
	return s.digests.read(func(k objectKey) bool {
		_, listed := fresh[scopeKey{k.ref.Kind, k.namespace}][k.ref.Name]
		return k.ref.Kind == w.kind && (w.namespace == "" || k.namespace == w.namespace) && !listed && !slices.Contains(gone, k)
	})
}

// takeOutLocked removes all that a watch delivered, and returns what is not in the new listing.
func (s *Store) takeOutLocked(w *watcher, fresh map[scopeKey]map[string]object) []objectKey {
	var gone []objectKey
	for at, objects := range s.objects {
		if at.kind != w.kind || w.namespace != "" && at.namespace != w.namespace {
			continue
		}
		for name := range objects {
			if _, ok := fresh[at][name]; !ok {
				gone = append(gone, objectKey{at.namespace, reference.Ref{Kind: at.kind, Name: name}})
			}
		}
		delete(s.objects, at)
	}
	return gone
}

// attempted records that a watch could not list its objects. A watch that fails for long counts as refused, so that it does
// not delay the others: what it has not delivered is read when it is needed.
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
	s.closeSynced()
}

// syncedLocked reports whether the Store is synced, or about to close the channel.
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

// beginLocked begins a delivery, which end must end, and reports whether its events are initial ones.
func (s *Store) beginLocked() (initial bool) {
	initial = !s.syncedLocked()
	if initial {
		s.initials++
	}
	return initial
}

// end ends a delivery: its events have been reported.
func (s *Store) end(initial bool) {
	if !initial {
		return
	}
	s.mu.Lock()
	s.initials--
	s.mu.Unlock()
	s.closeSynced()
}

// closeSynced closes the channel that Synced reads, once all initial events have been reported: who looks at everything then passes
// over them, so that nothing would be looked at again for one that comes later.
func (s *Store) closeSynced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Synced() && s.initials == 0 && s.syncedLocked() {
		close(s.synced)
	}
}

func (s *Store) event(w *watcher, meta *metav1.PartialObjectMetadata, kind EventType, initial bool) Event {
	return Event{
		Namespace: meta.Namespace, Ref: reference.Ref{Kind: w.kind, Name: meta.Name},
		Type: kind, ResourceVersion: meta.ResourceVersion, Received: s.now(), Initial: initial,
	}
}

func (s *Store) notify(event Event) {
	for _, handler := range s.handlers {
		handler(event)
	}
}
