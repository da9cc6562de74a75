package configstate

import (
	"context"
	"maps"
	"slices"

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

// putPodStatus stores a status.
func (s *Store) putPodStatus(w *watcher, namespace string, status podstatus.Status) {
	s.changePodStatuses(w, []objectKey{classOf(namespace, status.Class)}, statusKey{namespace, status.Name}, func() {
		s.statuses.put(namespace, status)
	})
}

// removePodStatus deletes a status.
func (s *Store) removePodStatus(w *watcher, namespace, name string) {
	s.changePodStatuses(w, nil, statusKey{namespace, name}, func() { s.statuses.remove(namespace, name) })
}

// changePodStatuses makes a change of one status, and reports the classes whose content differs: some, and the one that the
// status had.
func (s *Store) changePodStatuses(w *watcher, classes []objectKey, key statusKey, change func()) {
	s.mu.Lock()
	if at, ok := s.statuses.classOf[key]; ok && !slices.Contains(classes, at) {
		classes = append(classes, at)
	}
	before := make([][2]string, 0, len(classes))
	for _, k := range classes {
		before = append(before, s.statuses.version(k))
	}
	change()
	s.takesLocked(w, origin{})
	initial := s.beginLocked()
	var events []Event
	for i, k := range classes {
		if s.statuses.version(k) != before[i] {
			events = append(events, s.contentEvent(k, initial))
		}
	}
	s.mu.Unlock()
	defer s.end(initial)
	for _, event := range events {
		s.notify(event)
	}
}

// replacePodStatuses stores a listing of a namespace, or of all of them, in place of what was delivered before.
func (s *Store) replacePodStatuses(w *watcher, namespace string, listed podStatuses, from origin) {
	s.mu.Lock()
	if !s.takesLocked(w, from) {
		s.mu.Unlock()
		return
	}
	before := s.statuses.versions(namespace)
	s.statuses.replace(namespace, listed)
	after := s.statuses.versions(namespace)
	initial := s.beginLocked()
	s.mu.Unlock()
	defer s.end(initial)
	changed := slices.Collect(maps.Keys(after))
	for k := range before {
		if _, still := after[k]; !still {
			changed = append(changed, k)
		}
	}
	changed = slices.DeleteFunc(changed, func(k objectKey) bool { return before[k] == after[k] })
	for _, k := range changed {
		s.notify(s.contentEvent(k, initial))
	}
}

// listedPodStatuses takes the first listing of a watch, or a later one.
func (s *Store) listedPodStatuses(w *watcher, listed podStatuses) {
	s.replacePodStatuses(w, w.namespace, listed, origin{})
	s.mu.Lock()
	s.status[w] = progress{synced: true}
	s.mu.Unlock()
	s.closeSynced()
}

// contentEvent says that the content of a class differs. Whether the class itself comes or goes is another watch's to say.
func (s *Store) contentEvent(k objectKey, initial bool) Event {
	return Event{Namespace: k.namespace, Ref: k.ref, Type: Modified, Received: s.now(), Initial: initial}
}

// observeClassLocked is observeLocked for a SecretProviderClass.
func (s *Store) observeClassLocked(k objectKey, ring digest.Ring, _ []digest.Key) (digest.State, bool) {
	w := s.watcherOf(objectKey{k.namespace, reference.Ref{Kind: podStatusKind}})
	if w == nil || !s.status[w].synced {
		return digest.State{}, false
	}
	return s.statuses.state(k, ring, s.client.sha1(k.ref.Kind)), true
}

// readClass returns the state of a SecretProviderClass as the API server has it now. All statuses of the namespace are read
// for it, once for all who ask at the same time.
func (s *Store) readClass(ctx context.Context, by *lanes, k objectKey) (digest.State, error) {
	ring := s.ring()
	if ring.Empty() {
		return digest.State{}, digest.ErrNoKey
	}
	read, err := by.statuses.Do(ctx, k.namespace, func(ctx context.Context) (podStatuses, error) {
		return s.client.readPodStatuses(ctx, k.namespace, "")
	})
	if err != nil {
		return digest.State{}, err
	}
	return read.state(k, ring, s.client.sha1(k.ref.Kind)), nil
}

// classAt returns the state that a SecretProviderClass had at a resourceVersion; false when it had no content then.
func (s *Store) classAt(ctx context.Context, k objectKey, ring digest.Ring, version string) (digest.State, bool, error) {
	read, err := s.client.readPodStatuses(ctx, k.namespace, version)
	if err != nil {
		return digest.State{}, false, err
	}
	state := read.state(k, ring, s.client.sha1(k.ref.Kind))
	return state, !state.Absent, nil
}

// recheckClass is Recheck for the statuses of a namespace.
func (s *Store) recheckClass(ctx context.Context, k objectKey) error {
	w := s.watcherOf(objectKey{k.namespace, reference.Ref{Kind: podStatusKind}})
	if w == nil {
		return nil // out of scope, or not handled
	}
	s.mu.RLock()
	from := origin{read: true, delivered: s.delivered[w]}
	s.mu.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	read, err := s.client.readPodStatuses(ctx, k.namespace, "")
	if err != nil {
		return &ReadError{Namespace: k.namespace, Ref: k.ref, Err: err}
	}
	s.replacePodStatuses(w, k.namespace, read, from)
	return nil
}
