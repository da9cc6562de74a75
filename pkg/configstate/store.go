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

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/zeroing"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
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
	// OwnAnnotations reports whether to keep an annotation of a config object. nil keeps none. Keep only short values: an object has up to
	// 256 KiB of annotations.
	OwnAnnotations func(key, value []byte) bool
	// OwnLabels reports whether to keep a label, by key. nil keeps none.
	OwnLabels func(key string) bool
	// SHA1 says of which kinds State.SHA1 is computed, too. nil is none.
	SHA1 func(reference.Kind) bool
	// Now is the clock of Event.Received; nil is time.Now.
	Now func() time.Time
	// Log gets a line when a watch fails in a new way and when it works again.
	Log logr.Logger
}

// scopeKey is one kind in one namespace; in the key of a watch, the empty namespace means all of them.
type scopeKey struct {
	kind      reference.Kind
	namespace string
}

// Store knows the current state of config objects. Its methods are safe for concurrent use. It is made of parts that have each their own
// state, if any, and lock: see the package comment.
type Store struct {
	client  *client
	kinds   []reference.Kind // those that are watched
	watches watches
	started atomic.Bool

	events    *notifier
	progress  *syncProgress
	digests   *digests
	metadata  *metadataCache
	statuses  *podStatusCache
	reader    *reader
	rechecker *rechecker
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
	s := newStore(c, o)
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
			s.watches[scopeKey{kind, namespace}] = &watcher{
				kind: kind, namespace: namespace, client: c, log: log,
				keep:     wire.Keep{Annotation: o.OwnAnnotations, Label: o.OwnLabels},
				metadata: s.metadata, statuses: s.statuses, progress: s.progress,
			}
		}
	}
	return s, nil
}

// newStore puts the parts together, without watches.
func newStore(c *client, o Options) *Store {
	ws, events, known := make(watches), &notifier{now: o.Now}, newDigests(maxDigests)
	progress := newSyncProgress(ws)
	metadata := newMetadataCache(ws, known, progress, events)
	statuses := newPodStatusCache(ws, progress, events)
	return &Store{
		client: c, kinds: o.kinds(), watches: ws, events: events, progress: progress, digests: known, metadata: metadata, statuses: statuses,
		reader: &reader{
			client: c, ring: o.Ring, watches: ws, progress: progress, digests: known, metadata: metadata, statuses: statuses,
			queues: newQueues(c),
		},
		rechecker: &rechecker{client: c, watches: ws, metadata: metadata, statuses: statuses},
	}
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
	return zeroing.NewHTTPClient(config)
}

// OnEvent registers a handler, before Start. It is called from the goroutine of a watch or of a Recheck, and holds up the watch: it must
// only enqueue. The events of a ConfigMap or a Secret come in the order in which the metadata cache took it in, one after the other.
// Objects whose resourceVersion did not change are not reported.
func (s *Store) OnEvent(handler func(Event)) {
	s.events.add(handler)
}

// Start watches until the context ends, whatever happens to single watches. It can be called once.
func (s *Store) Start(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("a configstate.Store can be started only once")
	}
	var running sync.WaitGroup
	for _, w := range s.watches {
		running.Go(func() { w.run(ctx) })
	}
	running.Wait()
	return nil
}

// Synced reports whether every watch has listed its objects once, or is not allowed to: a namespace that may not be read
// delays no other. Once true it remains true.
func (s *Store) Synced() bool { return s.progress.synced() }

// WaitForSync waits for Synced. The error is the context's.
func (s *Store) WaitForSync(ctx context.Context) error { return s.progress.wait(ctx) }

// Cached answers from the metadata cache, without I/O: Absent, or UID and resourceVersion, and the Entries too where
// the digest cache has them for that very version under every key of the ring. A Ref is missing from the answer when
// nothing is known of it: its namespace is out of scope, not listed yet, or may not be read. The Entries are shared
// with other callers: do not change them.
func (s *Store) Cached(namespace string, refs []reference.Ref) map[reference.Ref]digest.State {
	return s.reader.observe(namespace, refs)
}

// Names returns the sorted names of a namespace's config objects of one kind, from the metadata cache: what a pattern
// expands to. It is nil when they are not known.
func (s *Store) Names(namespace string, kind reference.Kind) []string {
	return s.metadata.names(scopeKey{kind, namespace})
}

// Annotations returns the annotations of a config object that Options.OwnAnnotations keeps, from the metadata cache. Do
// not change them.
func (s *Store) Annotations(namespace string, ref reference.Ref) map[string]string {
	if o, _ := s.metadata.get(objectKey{namespace, ref}); o.own != nil {
		return o.own.annotations
	}
	return nil
}

// Labels returns the labels of a config object that Options.OwnLabels names, from the metadata cache. Do not change them.
func (s *Store) Labels(namespace string, ref reference.Ref) map[string]string {
	if o, _ := s.metadata.get(objectKey{namespace, ref}); o.own != nil {
		return o.own.labels
	}
	return nil
}

// Created returns the resourceVersion of the creation of a config object, if its watch has delivered that, and the annotations and
// labels that are kept are those of the creation; otherwise it is empty.
func (s *Store) Created(namespace string, ref reference.Ref) string {
	o, _ := s.metadata.get(objectKey{namespace, ref})
	return o.created
}

// Listed reports whether the config objects of a namespace have been listed once, or may not be: before that, an unknown
// object may exist. A namespace that is out of scope is never listed.
func (s *Store) Listed(namespace string) bool { return s.progress.settled(namespace, s.kinds) }

// Exists reports whether the metadata cache has a config object.
func (s *Store) Exists(namespace string, ref reference.Ref) bool {
	_, ok := s.metadata.get(objectKey{namespace, ref})
	return ok
}

// Unseen reports whether there may be a config object whose labels and annotations are not known: its watch has not listed its objects,
// and no read has delivered it. Learn reads it. Nothing grants the permission to get a SecretProviderClass: none is Unseen.
func (s *Store) Unseen(namespace string, ref reference.Ref) bool {
	if ref.Kind == reference.SecretProviderClass || s.Exists(namespace, ref) {
		return false
	}
	w := s.watches.of(ref.Kind, namespace)
	return w != nil && !s.progress.listed(w)
}

// ReadLive returns the state that the API server has now, with Entries, in at most two requests for an object: its metadata,
// and the object itself where the digest cache does not know that version. An object of which the digest cache knows
// nothing, or an older version than the watch has seen, is read at once. The metadata of many objects is read in one
// request, see worthListing. An object that does not exist is Absent. Callers at the same time share requests, but only
// those that began after they asked.
//
// The error joins a ReadError for each Ref that failed; the states of the others are returned nevertheless.
func (s *Store) ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return s.reader.readAllLive(ctx, s.reader.queues.loop, namespace, refs)
}

// Admission reads for the webhook.
type Admission struct {
	reader    *reader
	rechecker *rechecker
}

// Admission returns a reader whose reads do not wait for those of the Store's own methods, nor these for them.
func (s *Store) Admission() Admission { return Admission{s.reader, s.rechecker} }

// ReadLive is Store.ReadLive.
func (a Admission) ReadLive(
	ctx context.Context, namespace string, refs []reference.Ref,
) (map[reference.Ref]digest.State, error) {
	return a.reader.readAllLive(ctx, a.reader.queues.admitted, namespace, refs)
}

// Learn is Store.Learn.
func (a Admission) Learn(ctx context.Context, namespace string, refs []reference.Ref) error {
	return a.rechecker.learn(ctx, a.reader.queues.admitted, namespace, refs)
}

// ReadIfChanged returns what Cached does, always with Entries: objects whose Entries are not at hand are read. It is as
// current as the watch, or more: the API server may answer out of its own cache, which spares its storage a read for each
// change. However many ask at the same time, one version of an object is read once. Errors are as with ReadLive.
func (s *Store) ReadIfChanged(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return s.reader.current(ctx, namespace, refs)
}

// At returns the state that an object had at a resourceVersion of the API server's storage, with Entries. It fails where the API server
// does not keep that version any more, which is after some minutes.
func (s *Store) At(ctx context.Context, namespace string, ref reference.Ref, version string) (digest.State, error) {
	return s.reader.at(ctx, namespace, ref, version)
}

// Recheck reads the metadata of one config object and takes it in as if its watch had delivered it: where it is another
// version than the one that is known, the handlers of OnEvent are called. It is for the time in which the watch fails. What
// the watch delivers while the read is under way may be newer, and stays.
func (s *Store) Recheck(ctx context.Context, namespace string, ref reference.Ref) error {
	k := objectKey{namespace, ref}
	check := s.rechecker.object
	if ref.Kind == reference.SecretProviderClass {
		check = s.rechecker.class
	}
	if err := check(ctx, k); err != nil {
		return &ReadError{Namespace: namespace, Ref: ref, Err: err}
	}
	return nil
}

// Learn reads the metadata of config objects that are Unseen, as Recheck does. Errors are as with ReadLive.
func (s *Store) Learn(ctx context.Context, namespace string, refs []reference.Ref) error {
	return s.rechecker.learn(ctx, s.reader.queues.loop, namespace, refs)
}

// Waiting returns how many live reads wait until others have ended.
func (s *Store) Waiting() int { return s.reader.queues.waiting() }
