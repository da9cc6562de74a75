package configstate

import (
	"maps"
	"slices"
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/podstatus"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// podStatusKind is the kind of the watch of pod statuses, among the kinds of the other watches. No Ref has it: the content of
// a SecretProviderClass is in the statuses, and the watch of the classes themselves has their annotations.
const podStatusKind reference.Kind = "secretproviderclasspodstatus"

// resourceOf returns the resource that a watch is about.
func resourceOf(kind reference.Kind) string {
	if kind == podStatusKind {
		return reference.PodStatuses().Resource
	}
	return kind.Resource()
}

// statusKey names a pod status.
type statusKey struct{ namespace, name string }

// podStatuses are the statuses of some namespaces.
type podStatuses struct {
	byClass map[objectKey]map[string]podstatus.Status
	classOf map[statusKey]objectKey
	// counting has the status of each class that counts: a rotation compares each of a thousand statuses with this one only.
	counting map[objectKey]podstatus.Status
}

func newPodStatuses() podStatuses {
	return podStatuses{
		byClass: map[objectKey]map[string]podstatus.Status{}, classOf: map[statusKey]objectKey{}, counting: map[objectKey]podstatus.Status{},
	}
}

func classOf(namespace, class string) objectKey {
	return objectKey{namespace, reference.Ref{Kind: reference.SecretProviderClass, Name: class}}
}

func (x podStatuses) put(namespace string, s podstatus.Status) {
	x.remove(namespace, s.Name)
	at := classOf(namespace, s.Class)
	if x.byClass[at] == nil {
		x.byClass[at] = map[string]podstatus.Status{}
	}
	x.byClass[at][s.Name] = s
	x.classOf[statusKey{namespace, s.Name}] = at
	x.count(at, x.counting[at], s)
}

// count takes the one of some statuses that counts.
func (x podStatuses) count(k objectKey, statuses ...podstatus.Status) {
	if found, ok := podstatus.Of(statuses); ok {
		x.counting[k] = found
	} else {
		delete(x.counting, k)
	}
}

func (x podStatuses) remove(namespace, name string) {
	key := statusKey{namespace, name}
	at, ok := x.classOf[key]
	if !ok {
		return
	}
	delete(x.classOf, key)
	delete(x.byClass[at], name)
	if x.counting[at].Name == name {
		x.count(at, slices.Collect(maps.Values(x.byClass[at]))...)
	}
	if len(x.byClass[at]) == 0 {
		delete(x.byClass, at)
	}
}

// replace stores fresh statuses in place of those of a namespace, or of all of them.
func (x podStatuses) replace(namespace string, fresh podStatuses) {
	within := func(of string) bool { return namespace == "" || of == namespace }
	maps.DeleteFunc(x.byClass, func(k objectKey, _ map[string]podstatus.Status) bool { return within(k.namespace) })
	maps.DeleteFunc(x.classOf, func(k statusKey, _ objectKey) bool { return within(k.namespace) })
	maps.DeleteFunc(x.counting, func(k objectKey, _ podstatus.Status) bool { return within(k.namespace) })
	maps.Copy(x.byClass, fresh.byClass)
	maps.Copy(x.classOf, fresh.classOf)
	maps.Copy(x.counting, fresh.counting)
}

// state returns the state of a class.
func (x podStatuses) state(k objectKey, ring digest.Ring, sha1 bool) digest.State {
	state, content := podstatus.State(k.namespace, k.ref.Name, []podstatus.Status{x.counting[k]}, ring)
	if sha1 && !state.Absent {
		state.SHA1 = content.SHA1()
	}
	return state
}

// version identifies the content of a class.
func (x podStatuses) version(k objectKey) [2]string {
	return [2]string{x.counting[k].UID, x.counting[k].ResourceVersion}
}

// versions returns the versions of the classes of a namespace, or of all of them.
func (x podStatuses) versions(namespace string) map[objectKey][2]string {
	versions := map[objectKey][2]string{}
	for k := range x.byClass {
		if namespace == "" || k.namespace == namespace {
			versions[k] = x.version(k)
		}
	}
	return versions
}

// podStatusCache has the statuses that their watches have delivered: the contents of the SecretProviderClasses.
type podStatusCache struct {
	watches  watches
	progress *syncProgress
	events   *notifier

	// mu guards what follows. While it is held, that of progress may be locked.
	mu        sync.RWMutex
	statuses  podStatuses
	delivered deliveries
}

func newPodStatusCache(ws watches, p *syncProgress, n *notifier) *podStatusCache {
	return &podStatusCache{watches: ws, progress: p, events: n, statuses: newPodStatuses(), delivered: make(deliveries)}
}

// put stores a status.
func (c *podStatusCache) put(w *watcher, namespace string, status podstatus.Status) {
	c.change(w, []objectKey{classOf(namespace, status.Class)}, statusKey{namespace, status.Name}, func() {
		c.statuses.put(namespace, status)
	})
}

// remove deletes a status.
func (c *podStatusCache) remove(w *watcher, namespace, name string) {
	c.change(w, nil, statusKey{namespace, name}, func() { c.statuses.remove(namespace, name) })
}

// change makes a change of one status, and reports the classes whose content differs: some, and the one that the
// status had.
func (c *podStatusCache) change(w *watcher, classes []objectKey, key statusKey, change func()) {
	c.mu.Lock()
	if at, ok := c.statuses.classOf[key]; ok && !slices.Contains(classes, at) {
		classes = append(classes, at)
	}
	before := make([][2]string, 0, len(classes))
	for _, k := range classes {
		before = append(before, c.statuses.version(k))
	}
	change()
	c.delivered.accepts(w, origin{})
	initial := c.progress.begin()
	var events []Event
	for i, k := range classes {
		if c.statuses.version(k) != before[i] {
			events = append(events, c.contentEvent(k, initial))
		}
	}
	c.mu.Unlock()
	defer c.progress.end(initial)
	for _, event := range events {
		c.events.notify(event)
	}
}

// replace stores a listing of a namespace, or of all of them, in place of what was delivered before.
func (c *podStatusCache) replace(w *watcher, namespace string, listed podStatuses, from origin) {
	c.mu.Lock()
	if !c.delivered.accepts(w, from) {
		c.mu.Unlock()
		return
	}
	before := c.statuses.versions(namespace)
	c.statuses.replace(namespace, listed)
	after := c.statuses.versions(namespace)
	initial := c.progress.begin()
	c.mu.Unlock()
	defer c.progress.end(initial)
	changed := slices.Collect(maps.Keys(after))
	for k := range before {
		if _, still := after[k]; !still {
			changed = append(changed, k)
		}
	}
	changed = slices.DeleteFunc(changed, func(k objectKey) bool { return before[k] == after[k] })
	for _, k := range changed {
		c.events.notify(c.contentEvent(k, initial))
	}
}

// list takes the first listing of a watch, or a later one.
func (c *podStatusCache) list(w *watcher, listed podStatuses) {
	c.replace(w, w.namespace, listed, origin{})
	c.progress.list(w)
	c.progress.finish()
}

// contentEvent says that the content of a class differs. Whether the class itself comes or goes is another watch's to say.
func (c *podStatusCache) contentEvent(k objectKey, initial bool) Event {
	return Event{Namespace: k.namespace, Ref: k.ref, Type: Modified, Received: c.events.now(), Initial: initial}
}

// observe adds the states of the SecretProviderClasses among some Refs, as far as they are known.
func (c *podStatusCache) observe(
	states map[reference.Ref]digest.State, namespace string, refs []reference.Ref, ring digest.Ring, sha1 bool,
) {
	isClass := func(ref reference.Ref) bool { return ref.Kind == reference.SecretProviderClass }
	w := c.watches.of(podStatusKind, namespace)
	if w == nil || !slices.ContainsFunc(refs, isClass) {
		return
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.progress.listed(w) {
		return
	}
	for _, ref := range refs {
		if isClass(ref) {
			states[ref] = c.statuses.state(objectKey{namespace, ref}, ring, sha1)
		}
	}
}

// beforeRead returns the origin of a read that begins now.
func (c *podStatusCache) beforeRead(w *watcher) origin {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.delivered.read(w)
}
