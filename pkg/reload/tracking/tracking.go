package tracking

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Tracking knows the workloads and what they track, and queues those that a change concerns. It is safe for concurrent use.
type Tracking struct {
	with Options

	watches    *watches
	index      *index.Index
	entries    *entries
	changes    *workloadChanges
	live       *liveWorkloads
	failing    failingWatches
	namespaces *namespaces
	rechecks   *rechecks
}

// Workloads are those of one kind; workloadstate.Watch is some.
type Workloads interface {
	// Run follows them until the context ends.
	Run(ctx context.Context)
	// Get returns one, or false if there is none. It shows each change before that is reported.
	Get(namespace, name string) (workload.Summary, bool)
}

// Store reads config objects whose watch fails; chain.Store does.
type Store interface {
	// Recheck reads one object, and takes in what its watch has not delivered.
	Recheck(ctx context.Context, namespace string, ref reference.Ref) error
}

// Referents is a Store that knows custom resources; chain.Store is one. Changes of the objects below them are no events of what workloads
// track.
type Referents interface {
	// Referred returns the objects, by namespace, to which custom resources refer; cluster-scoped ones are in the empty namespace.
	Referred() map[string][]reference.Ref
	// ClusterScoped reports whether the objects of a kind have no namespace.
	ClusterScoped(kind reference.Kind) bool
}

// Options are what a Tracking works with.
type Options struct {
	// Reader reads the annotations of workloads.
	Reader stamp.Reader
	// Scope has the workloads that are handled.
	Scope scope.Scope
	// Direct means that no admission webhook of ours verifies what the loop records: it then compares versions, of each workload.
	Direct bool
	// FollowJobs also follows the kinds whose template cannot change. Ignores reports which of them are left alone all the same;
	// pending says that a change of its configuration came before it finished.
	FollowJobs bool
	Ignores    func(s workload.Summary, pending bool) bool
	// Settle is how long a change is kept for workloads that come later than it.
	Settle time.Duration
	// Joined is called for each kind that is followed from now on; nil where no caller needs it.
	Joined func(workload.Kind)
	// Workloads returns those of a kind, and has changed called for each that comes, changes or goes. listed is the version of the first
	// listing where that brings the workload; empty for all that comes later.
	Workloads func(kind workload.Kind, changed func(before, after workload.Summary, listed string)) Workloads
	// Summary returns what Workloads keep of one; nil where they keep all, as in tests.
	Summary func(workload.Object) workload.Summary
	// Patterns is the index of the patterns of workloads; nil where no dialect has any.
	Patterns *pattern.Index[workload.Key]
	// Watches is nil where all watches work, as in tests.
	Watches Watches
	Mapper  Mapper
	// Cache has the namespaces; APIReader reads what a failing watch does not show, Store config objects.
	Cache     cache.Cache
	APIReader client.Reader
	Store     Store
	// Large bounds the workloads that are read as a whole.
	Large largeread.Limit
	// State and Backoff are what is kept of workloads, and forgotten with them.
	State   *state.State
	Backoff state.Backoff
	Queue   *queue.Queue
	Now     func() time.Time
	Log     logr.Logger
}

// New returns a Tracking that follows nothing yet.
func New(o Options) *Tracking {
	if o.Summary == nil {
		o.Summary = workload.Object.Summary
	}
	t := &Tracking{with: o, watches: newWatches(), index: index.New(o.Patterns), failing: failingWatches{o.Watches, o.Mapper, o.Now}}
	t.entries = &entries{reader: o.Reader, index: t.index, recent: index.NewRecent(o.Settle), state: o.State, direct: o.Direct, now: o.Now}
	t.changes = &workloadChanges{with: o, index: t.index, entries: t.entries}
	t.live = &liveWorkloads{
		apiReader: o.APIReader, large: o.Large, waiting: fairlimit.New(largeWaits, largeWaitsOfANamespace),
		index: t.index, entries: t.entries, summary: o.Summary, forget: t.Forget,
	}
	t.namespaces = &namespaces{
		scope: o.Scope, cache: o.Cache, apiReader: o.APIReader, failing: t.failing, index: t.index, queue: o.Queue, inScopeSince: t.inScopeSince,
		log: o.Log.WithValues("kind", "v1/Namespace"),
	}
	t.rechecks = newRechecks(t)
	return t
}

// Sources feed the queue once its controller starts: the workloads of kinds, and namespaces where their labels matter.
func (t *Tracking) Sources(kinds Kinds) []source.TypedSource[workload.Key] {
	sources := []source.TypedSource[workload.Key]{t.with.Queue.Source(func(ctx context.Context) { t.Follow(ctx, kinds) })}
	if t.with.Scope.SelectsNamespaces() {
		sources = append(sources, t.with.Queue.Source(t.namespaces.attach))
	}
	return sources
}

// Recheck reads the objects of each watch that fails, again and again until the context ends. It runs on every replica; a standby reads
// config objects only.
func (t *Tracking) Recheck(ctx context.Context) error { return t.rechecks.run(ctx) }

// QueueAll queues every workload. A change of the digest keys does so, too: workloads that came without a key have waited for
// it, and what was recorded under a lost key must be adopted before the next change, which would be missed otherwise.
func (t *Tracking) QueueAll() { t.with.Queue.Add(queue.Workload, t.index.All()...) }

// Reindex enters what the workloads ask for once more, and queues them all.
func (t *Tracking) Reindex() {
	t.entries.rereads.Add(1) // before the index is asked: what enters it from now on is read again
	for _, key := range t.index.All() {
		t.EnterAgain(key)
	}
	t.QueueAll()
}

// EnterAgain enters what a workload asks for once more: the index may keep its expressions now, which it had no memory for before.
func (t *Tracking) EnterAgain(key workload.Key) {
	t.withKept(key, func(s workload.Summary) { t.entries.indexIntent(key, s) })
}

// inScopeSince records since which version a namespace is in scope; empty if that is not known, or it is not.
func (t *Tracking) inScopeSince(namespace, version string) {
	if version == "" {
		t.entries.inScopeSince.Delete(namespace)
		return
	}
	t.entries.inScopeSince.Store(namespace, version) // before the index is asked: a workload that enters it from now on finds the version
	for _, key := range t.index.In(namespace) {
		t.withKept(key, t.entries.startInScope)
	}
}

// withKept calls f with what is kept of a workload, if there is one. No later version enters the index meanwhile.
func (t *Tracking) withKept(key workload.Key, f func(workload.Summary)) {
	w := t.watches.get(key.Kind)
	if w == nil {
		return
	}
	w.unlessGone(func() {
		if s, ok := w.workloads.Get(key.Namespace, key.Name); ok {
			f(s)
		}
	})
}

// ConfigChanged is called by the watches of config objects. What was there before the watch began is found by comparing.
func (t *Tracking) ConfigChanged(e configstate.Event) {
	if !e.Initial {
		// Recorded before the index is asked: a workload that enters it from now on finds the change.
		t.entries.recent.Put(index.Object{Namespace: e.Namespace, Ref: e.Ref}, index.Change{At: e.Received, ResourceVersion: e.ResourceVersion})
	}
	look := func(keys []workload.Key) {
		t.queueForEvent(slices.DeleteFunc(keys, t.finished), e.Received)
	}
	look(t.index.WorkloadsFor(e, look))
}

// queueForEvent records a config event of workloads, and queues them, unless they are queued for a time that is soon enough: under constant change
// each event would have each of them looked at.
func (t *Tracking) queueForEvent(keys []workload.Key, received time.Time) {
	now, later := t.with.State.Changes.EventArrivedFor(keys, received)
	for _, key := range t.index.Missing(now) { // those of later have an entry from before
		t.forgetEventUnlessEntered(key)
	}
	t.with.Queue.Add(queue.Config, now...)
	for _, look := range later {
		t.with.Queue.AddAfter(look.After, queue.Config, look.Key)
	}
}

// forgetEventUnlessEntered forgets a config event of a workload that has left the index before the event was recorded: a standby does not
// reconcile it.
func (t *Tracking) forgetEventUnlessEntered(key workload.Key) {
	w := t.watches.get(key.Kind)
	if w == nil {
		t.with.State.Changes.Forget(key)
		return
	}
	w.unlessGone(func() {
		// Within the lock, so that no other workload of its name is being entered.
		if !t.index.Has(key) {
			t.with.State.Changes.Forget(key)
		}
	})
}

// finished reports whether a workload is a Job that has finished and to which no earlier change is left to be applied. Such a Job is
// in the index where it was running at its last change.
func (t *Tracking) finished(key workload.Key) bool {
	w := t.watches.get(key.Kind)
	if w == nil || !w.kind.CreateOnly {
		return false
	}
	s, ok := w.workloads.Get(key.Namespace, key.Name)
	return ok && t.with.Ignores(s, t.with.State.Changes.HasPending(key))
}

// Get returns a workload as its watch shows it, or live where that fails; false if there is none.
func (t *Tracking) Get(ctx context.Context, key workload.Key) (workload.Summary, bool) {
	w := t.watches.get(key.Kind)
	if w == nil {
		return workload.Summary{}, false
	}
	kept, ok := w.workloads.Get(key.Namespace, key.Name)
	if !t.failing.includesKind(w, key.Namespace) {
		return kept, ok
	}
	return t.live.get(ctx, w, key)
}

// WatchFails reports whether the watch of a workload fails: where the workload cannot be read live, Get may return an older state.
func (t *Tracking) WatchFails(key workload.Key) bool {
	w := t.watches.get(key.Kind)
	return w != nil && t.failing.includesKind(w, key.Namespace)
}

// Forget drops the state of a workload.
func (t *Tracking) Forget(key workload.Key) {
	t.with.State.Forget(key)
	t.with.Backoff.Forget(key)
}

// ForgetDeleted drops the state of a workload that Get has not found. It keeps the state if the workload has been created since.
func (t *Tracking) ForgetDeleted(key workload.Key) {
	w := t.watches.get(key.Kind)
	if w == nil {
		t.Forget(key)
		return
	}
	w.unlessGone(func() {
		if _, ok := w.workloads.Get(key.Namespace, key.Name); !ok {
			t.Forget(key)
		}
	})
}
