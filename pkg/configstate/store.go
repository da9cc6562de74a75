package configstate

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/quiet"
	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Options say what a Store follows and how it reaches it.
type Options struct {
	// Config leads to the API server. Its QPS of 0 means no client-side limit here.
	Config *rest.Config
	// HTTPClient is used for all requests. nil, which is preferred, makes one whose connections keep no Secrets: see
	// the package comment and NewHTTPClient.
	HTTPClient *http.Client
	// Namespaces are those to watch, two watches each. None means all of them, with two watches in total.
	Namespaces []string
	// SecretProviderClasses follows these, too, and the statuses of the pods that mount them: two watches more.
	SecretProviderClasses bool
	// Without are the kinds that are not watched: none of their objects is tracked.
	Without []reference.Kind
	// Ring returns the current digest keys. It is called for every read and must be cheap.
	Ring func() digest.Ring
	// OwnAnnotations reports whether to keep an annotation of a config object, by key. nil keeps none.
	OwnAnnotations func(key string) bool
	// OwnLabels reports whether to keep a label, by key. nil keeps none.
	OwnLabels func(key string) bool
	// SHA1 says of which kinds State.SHA1 is computed, too. nil is none.
	SHA1 func(reference.Kind) bool
	// Now is the clock of Event.Received; nil is time.Now.
	Now func() time.Time
	// Log gets a line when a watch fails in a new way and when it works again.
	Log logr.Logger
}

// EventType is what happened to a config object.
type EventType string

// The types of events. A re-created object that is delivered as an update, with another UID, counts as Modified.
const (
	Added    EventType = "Added"
	Modified EventType = "Modified"
	Deleted  EventType = "Deleted"
)

// Event says that a config object has changed: some of its metadata for sure, its content perhaps.
type Event struct {
	// Namespace is empty where the object is in none: workloads of every namespace can track it.
	Namespace string
	Ref       reference.Ref
	Type      EventType
	// ResourceVersion is that of the write that the event reports; empty where it is not known.
	ResourceVersion string
	// Received is when the event arrived here: latencies are counted from it.
	Received time.Time
	// Initial marks what was found before the Store as a whole was synced. Who looks at everything once the Store is
	// synced can pass over it.
	Initial bool
}

// scopeKey is one kind in one namespace; in the key of a watch, the empty namespace means all of them.
type scopeKey struct {
	kind      reference.Kind
	namespace string
}

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

// Store knows the current state of config objects. Its methods are safe for concurrent use.
type Store struct {
	client   *client
	ring     func() digest.Ring
	now      func() time.Time
	digests  *digests
	admitted *lanes // reads of the webhook
	live     *lanes // reads of the loop
	fills    *lanes // reads of the loop that may come out of the API server's cache
	limits   [2]*fairlimit.Limit
	handlers []func(Event)
	started  atomic.Bool
	synced   chan struct{} // closed once

	kinds    []reference.Kind      // those that are watched
	watchers map[scopeKey]*watcher // fixed after New

	mu      sync.RWMutex
	objects map[scopeKey]map[string]object
	// statuses have the content of SecretProviderClasses.
	statuses podStatuses
	// status has the watches that have listed or failed.
	status map[*watcher]progress
	// delivered counts what each watch has delivered.
	delivered map[*watcher]uint64
	// initials counts the deliveries under way whose events are initial ones.
	initials int
}

// progress is how much a watch has delivered.
type progress struct {
	synced, refused bool
	// failing is when it failed first.
	failing time.Time
}

// readLimit bounds one request for one object. Callers have shorter deadlines of their own, but they may all leave.
const readLimit = 30 * time.Second

// New makes a Store. It does no I/O; Start does.
func New(o Options) (*Store, error) {
	if o.Config == nil || o.Ring == nil {
		return nil, errors.New("a configstate.Store needs a Config and a Ring")
	}
	c, err := newClient(o.Config, o.HTTPClient)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if c.sha1 = o.SHA1; c.sha1 == nil {
		c.sha1 = func(reference.Kind) bool { return false }
	}
	webhook, loop := fairlimit.New(readsInFlight, readsOfANamespace), fairlimit.New(readsInFlight, readsOfANamespace)
	s := &Store{
		now:      o.Now,
		client:   c,
		ring:     o.Ring,
		digests:  newDigests(maxDigests),
		admitted: newLanes(webhook),
		live:     newLanes(loop),
		fills:    newLanes(loop),
		limits:   [2]*fairlimit.Limit{webhook, loop},
		synced:   make(chan struct{}),
		watchers: make(map[scopeKey]*watcher),
		kinds:    o.kinds(),
		objects:  make(map[scopeKey]map[string]object),
		statuses: newPodStatuses(),
		status:   make(map[*watcher]progress),

		delivered: make(map[*watcher]uint64),
	}
	namespaces := o.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		for _, kind := range s.kinds {
			log := o.Log.WithValues("resource", resourceOf(kind))
			if namespace != "" {
				log = log.WithValues("namespace", namespace)
			}
			s.watchers[scopeKey{kind, namespace}] = &watcher{
				kind: kind, namespace: namespace, client: c, store: s, log: log,
				keep: wire.Keep{Annotation: o.OwnAnnotations, Label: o.OwnLabels},
			}
		}
	}
	return s, nil
}

// kinds returns the kinds of the watches.
func (o Options) kinds() []reference.Kind {
	kinds := slices.DeleteFunc(reference.Kinds(), func(kind reference.Kind) bool { return slices.Contains(o.Without, kind) })
	if o.SecretProviderClasses {
		kinds = append(kinds, reference.SecretProviderClass, podStatusKind)
	}
	return kinds
}

// NewHTTPClient makes the client that a Store makes for itself when it is given none: HTTP/1.1, without compression,
// and with connections that overwrite their buffers. It is for programs that read Secrets elsewhere too.
func NewHTTPClient(config *rest.Config) (*http.Client, error) {
	return quiet.NewHTTPClient(config)
}

// OnEvent registers a handler, before Start. It is called from the goroutine of a watch, in the order of that watch, and
// holds it up: it must only enqueue. Objects whose resourceVersion did not change are not reported.
func (s *Store) OnEvent(handler func(Event)) {
	s.handlers = append(s.handlers, handler)
}

// Start watches until the context ends, whatever happens to single watches. It can be called once.
func (s *Store) Start(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("a configstate.Store can be started only once")
	}
	var running sync.WaitGroup
	for _, w := range s.watchers {
		running.Go(func() { w.run(ctx) })
	}
	running.Wait()
	return nil
}

// Synced reports whether every watch has listed its objects once, or is not allowed to: a namespace that may not be read
// delays no other. Once true it remains true.
func (s *Store) Synced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// WaitForSync waits for Synced. The error is the context's.
func (s *Store) WaitForSync(ctx context.Context) error {
	select {
	case <-s.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Observe answers from the metadata cache, without I/O: Absent, or UID and resourceVersion, and the Entries too where
// the digest cache has them for that very version under every key of the ring. A Ref is missing from the answer when
// nothing is known of it: its namespace is out of scope, not listed yet, or may not be read. The Entries are shared
// with other callers: do not change them.
func (s *Store) Observe(namespace string, refs []reference.Ref) map[reference.Ref]digest.State {
	ring := s.ring()
	keys := ring.Keys()
	states := make(map[reference.Ref]digest.State, len(refs))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, ref := range refs {
		observe := s.observeLocked
		if ref.Kind == reference.SecretProviderClass {
			observe = s.observeClassLocked
		}
		if state, ok := observe(objectKey{namespace, ref}, ring, keys); ok {
			states[ref] = state
		}
	}
	return states
}

func (s *Store) observeLocked(k objectKey, _ digest.Ring, keys []digest.Key) (digest.State, bool) {
	w := s.watcherOf(k)
	if w == nil || !s.status[w].synced {
		return digest.State{}, false
	}
	o, ok := s.objects[scopeKey{k.ref.Kind, k.namespace}][k.ref.Name]
	if !ok {
		return digest.State{Absent: true}, true
	}
	if state, ok := s.digests.at(k, o.uid, o.resourceVersion, keys); ok && len(keys) > 0 {
		return state, true
	}
	return digest.State{UID: o.uid, ResourceVersion: o.resourceVersion}, true
}

func (s *Store) watcherOf(k objectKey) *watcher {
	if w, ok := s.watchers[scopeKey{k.ref.Kind, k.namespace}]; ok {
		return w
	}
	return s.watchers[scopeKey{kind: k.ref.Kind}]
}

// Names returns the sorted names of a namespace's config objects of one kind, from the metadata cache: what a pattern
// expands to. It is nil when they are not known.
func (s *Store) Names(namespace string, kind reference.Kind) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	objects := s.objects[scopeKey{kind, namespace}]
	names := make([]string, 0, len(objects))
	for name := range objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Annotations returns the annotations of a config object that Options.OwnAnnotations names, from the metadata cache. Do
// not change them.
func (s *Store) Annotations(namespace string, ref reference.Ref) map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if o := s.objects[scopeKey{ref.Kind, namespace}][ref.Name].own; o != nil {
		return o.annotations
	}
	return nil
}

// Labels returns the labels of a config object that Options.OwnLabels names, from the metadata cache. Do not change them.
func (s *Store) Labels(namespace string, ref reference.Ref) map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if o := s.objects[scopeKey{ref.Kind, namespace}][ref.Name].own; o != nil {
		return o.labels
	}
	return nil
}

// Created returns the resourceVersion of the creation of a config object, if its watch has delivered that, and the annotations and
// labels that are kept are those of the creation; otherwise it is empty.
func (s *Store) Created(namespace string, ref reference.Ref) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[scopeKey{ref.Kind, namespace}][ref.Name].created
}

// Listed reports whether the config objects of a namespace have been listed once, or may not be: before that, an unknown
// object may exist. A namespace that is out of scope is never listed.
func (s *Store) Listed(namespace string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, kind := range s.kinds {
		w := s.watcherOf(objectKey{namespace, reference.Ref{Kind: kind}})
		if p := s.status[w]; w == nil || !p.synced && !p.refused {
			return false
		}
	}
	return true
}

// Exists reports whether the metadata cache has a config object.
func (s *Store) Exists(namespace string, ref reference.Ref) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.objects[scopeKey{ref.Kind, namespace}][ref.Name]
	return ok
}
