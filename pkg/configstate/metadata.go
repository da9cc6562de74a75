package configstate

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// object is what the metadata cache keeps of a config object.
type object struct {
	uid, resourceVersion string
	// created is the resourceVersion of the creation; empty where that was not seen, or the object has got other labels or annotations
	// of those that are kept since.
	created string
	own     *own // nil for most objects
}

// own are the annotations and labels that were asked for.
type own struct{ annotations, labels map[string]string }

// metadataCache has the metadata of all config objects that the watches have delivered.
type metadataCache struct {
	watches  watches
	digests  *digests
	progress *syncProgress
	events   *notifier

	// mu guards what follows. While it is held, that of progress or of digests may be locked.
	mu        sync.RWMutex
	objects   map[scopeKey]map[string]object
	delivered deliveries
}

func newMetadataCache(ws watches, d *digests, p *syncProgress, n *notifier) *metadataCache {
	return &metadataCache{
		watches: ws, digests: d, progress: p, events: n, objects: make(map[scopeKey]map[string]object), delivered: make(deliveries),
	}
}

// put stores an object. Of a new one that the watch delivers, that is the creation.
func (c *metadataCache) put(w *watcher, meta *metav1.PartialObjectMetadata, from origin) {
	w.delivering.Lock()
	defer w.delivering.Unlock()
	c.mu.Lock()
	if !c.delivered.accepts(w, from) {
		c.mu.Unlock()
		return
	}
	at := scopeKey{w.kind, meta.Namespace}
	objects := c.objects[at]
	if objects == nil {
		objects = make(map[string]object)
		c.objects[at] = objects
	}
	kind, changed := difference(objects, meta)
	o := objectOf(meta)
	if kind != Added {
		o.created = objects[meta.Name].createdAs(meta)
	} else if !from.read {
		o.created = meta.ResourceVersion
	}
	objects[meta.Name] = o
	initial := c.progress.begin()
	c.mu.Unlock()
	defer c.progress.end(initial)
	if changed {
		c.events.notify(c.event(w, meta, kind, initial))
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
func (c *metadataCache) remove(w *watcher, meta *metav1.PartialObjectMetadata, from origin) {
	w.delivering.Lock()
	defer w.delivering.Unlock()
	c.mu.Lock()
	if !c.delivered.accepts(w, from) {
		c.mu.Unlock()
		return
	}
	at := scopeKey{w.kind, meta.Namespace}
	_, known := c.objects[at][meta.Name]
	delete(c.objects[at], meta.Name)
	if len(c.objects[at]) == 0 {
		delete(c.objects, at)
	}
	initial := c.progress.begin()
	c.mu.Unlock()
	defer c.progress.end(initial)
	read := c.digests.drop(objectKey{meta.Namespace, reference.Ref{Kind: w.kind, Name: meta.Name}})
	if known || read {
		c.events.notify(c.event(w, meta, Deleted, initial))
	}
}

// replace stores a listing in place of all that the watch delivered before.
func (c *metadataCache) replace(w *watcher, metas []*metav1.PartialObjectMetadata) {
	fresh := make(map[scopeKey]map[string]object)
	for _, meta := range metas {
		at := scopeKey{w.kind, meta.Namespace}
		if fresh[at] == nil {
			fresh[at] = make(map[string]object)
		}
		fresh[at][meta.Name] = objectOf(meta)
	}
	var events []Event
	first := !c.progress.listed(w)
	if first {
		events = make([]Event, 0, len(metas)) // mostly, all are new
	}

	w.delivering.Lock()
	defer w.delivering.Unlock()
	c.mu.Lock()
	initial := c.progress.begin()
	for _, meta := range metas {
		if kind, changed := difference(c.objects[scopeKey{w.kind, meta.Namespace}], meta); changed {
			events = append(events, c.event(w, meta, kind, initial))
		}
	}
	gone := c.takeOutLocked(w, fresh)
	if first {
		gone = append(gone, c.readOnlyLocked(w, fresh, gone)...)
	}
	for _, k := range gone {
		unseen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.ref.Name}}
		events = append(events, c.event(w, unseen, Deleted, initial))
	}
	maps.Copy(c.objects, fresh)
	c.progress.list(w)
	c.delivered.accepts(w, origin{})
	c.mu.Unlock()
	defer c.progress.end(initial)

	for _, meta := range metas {
		c.digests.dropOther(objectKey{meta.Namespace, reference.Ref{Kind: w.kind, Name: meta.Name}}, meta.ResourceVersion)
	}
	for _, event := range events {
		if event.Type == Deleted {
			c.digests.drop(objectKey{event.Namespace, event.Ref})
		}
		c.events.notify(event)
	}
}

// readOnlyLocked returns what was read before a watch has listed its objects for the first time, and is in neither of two sets: of its
// end no watch says anything.
func (c *metadataCache) readOnlyLocked(w *watcher, fresh map[scopeKey]map[string]object, gone []objectKey) []objectKey {
	return c.digests.read(func(k objectKey) bool {
		_, listed := fresh[scopeKey{k.ref.Kind, k.namespace}][k.ref.Name]
		return k.ref.Kind == w.kind && (w.namespace == "" || k.namespace == w.namespace) && !listed && !slices.Contains(gone, k)
	})
}

// takeOutLocked removes all that a watch delivered, and returns what is not in the new listing.
func (c *metadataCache) takeOutLocked(w *watcher, fresh map[scopeKey]map[string]object) []objectKey {
	var gone []objectKey
	for at, objects := range c.objects {
		if at.kind != w.kind || w.namespace != "" && at.namespace != w.namespace {
			continue
		}
		for name := range objects {
			if _, ok := fresh[at][name]; !ok {
				gone = append(gone, objectKey{at.namespace, reference.Ref{Kind: at.kind, Name: name}})
			}
		}
		delete(c.objects, at)
	}
	return gone
}

func (c *metadataCache) event(w *watcher, meta *metav1.PartialObjectMetadata, kind EventType, initial bool) Event {
	return Event{
		Namespace: meta.Namespace, Ref: reference.Ref{Kind: w.kind, Name: meta.Name},
		Type: kind, ResourceVersion: meta.ResourceVersion, Received: c.events.now(), Initial: initial,
	}
}

// observe adds the states of config objects, as far as they are known, all of one moment. What is said of the Entries is in
// Store.Cached. SecretProviderClasses are left out: their content is elsewhere.
func (c *metadataCache) observe(states map[reference.Ref]digest.State, namespace string, refs []reference.Ref, keys []digest.Key) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, ref := range refs {
		if ref.Kind == reference.SecretProviderClass {
			continue
		}
		if state, ok := c.observeLocked(objectKey{namespace, ref}, keys); ok {
			states[ref] = state
		}
	}
}

func (c *metadataCache) observeLocked(k objectKey, keys []digest.Key) (digest.State, bool) {
	w := c.watches.of(k.ref.Kind, k.namespace)
	if w == nil || !c.progress.listed(w) {
		return digest.State{}, false
	}
	o, ok := c.objects[scopeKey{k.ref.Kind, k.namespace}][k.ref.Name]
	if !ok {
		return digest.State{Absent: true}, true
	}
	if state, ok := c.digests.at(k, o.uid, o.resourceVersion, keys); ok && len(keys) > 0 {
		return state, true
	}
	return digest.State{UID: o.uid, ResourceVersion: o.resourceVersion}, true
}

// get returns what is kept of a config object.
func (c *metadataCache) get(k objectKey) (object, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	o, ok := c.objects[scopeKey{k.ref.Kind, k.namespace}][k.ref.Name]
	return o, ok
}

// beforeRead returns the origin of a read of an object of a watch that begins now.
func (c *metadataCache) beforeRead(w *watcher) origin {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.delivered.read(w)
}

// names returns the sorted names of a namespace's config objects of one kind.
func (c *metadataCache) names(at scopeKey) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	objects := c.objects[at]
	names := make([]string, 0, len(objects))
	for name := range objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// count returns how many config objects of a kind a namespace has, and how many of some names are none of theirs; false where that is
// not known.
func (c *metadataCache) count(at scopeKey, names []string) (all, absent int, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if w := c.watches.of(at.kind, at.namespace); w == nil || !c.progress.listed(w) {
		return 0, 0, false
	}
	objects := c.objects[at]
	for _, name := range names {
		if _, exists := objects[name]; !exists {
			absent++
		}
	}
	return len(objects), absent, true
}

// outdates reports whether another version of an object is kept than one that was read.
func (c *metadataCache) outdates(k objectKey, read digest.State) bool {
	o, ok := c.get(k)
	return ok && (o.uid != read.UID || o.resourceVersion != read.ResourceVersion)
}
