package tracking

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
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
	recent     *index.Recent
	failing    failingWatches
	namespaces *namespaces
	rechecks   *rechecks
	// began is when the process began to watch, in whole seconds, as creation times are.
	began time.Time
	// rereads counts how often all workloads were to be read again.
	rereads atomic.Uint64
}

// Workloads are those of one kind; workloadstate.Watch is some.
type Workloads interface {
	// Run follows them until the context ends.
	Run(ctx context.Context)
	// Get returns one, or false if there is none. It shows each change before that is reported.
	Get(namespace, name string) (workload.Summary, bool)
}

// Store reads config objects whose watch fails; configstate.Store does.
type Store interface {
	Recheck(ctx context.Context, namespace string, ref reference.Ref) error
}

// Referents is a Store that knows custom resources; chain.Store is one. Changes of the config objects below them are no events of what
// workloads track.
type Referents interface {
	// Referred returns the config objects, by namespace, to which custom resources refer.
	Referred() map[string][]reference.Ref
}

// Options are what a Tracking works with.
type Options struct {
	// Reader reads the annotations of workloads.
	Reader stamp.Reader
	// Scope has the workloads that are handled.
	Scope scope.Scope
	// FollowJobs also follows the kinds whose template cannot change. Ignores reports which of them are left alone all the same;
	// pending says that a change of its configuration came before it finished.
	FollowJobs bool
	Ignores    func(s workload.Summary, pending bool) bool
	// Settle is how long a change is kept for workloads that come later than it.
	Settle time.Duration
	// Joined is called for each kind that is followed from now on; nil where no caller needs it.
	Joined func(workload.Kind)
	// Workloads returns those of a kind, and has changed called for each that comes, changes or goes.
	Workloads func(kind workload.Kind, changed func(before, after workload.Summary)) Workloads
	// Patterns is the index of the patterns of workloads; nil where no dialect has any.
	Patterns *pattern.Index[workload.Key]
	// Watches is nil where all watches work, as in tests.
	Watches Watches
	Mapper  Mapper
	// Cache has the namespaces; APIReader reads what a failing watch does not show, Store config objects.
	Cache     cache.Cache
	APIReader client.Reader
	Store     Store
	// State and Backoff are what is kept of workloads, and forgotten with them.
	State   *state.State
	Backoff state.Backoff
	Queue   *queue.Queue
	Now     func() time.Time
	Log     logr.Logger
}

// New returns a Tracking that follows nothing yet.
func New(o Options) *Tracking {
	t := &Tracking{
		with: o, watches: newWatches(), index: index.New(o.Patterns), recent: index.NewRecent(o.Settle), failing: failingWatches{o.Watches, o.Mapper, o.Now},
		began: o.Now().Truncate(time.Second),
	}
	t.namespaces = &namespaces{
		scope: o.Scope, cache: o.Cache, apiReader: o.APIReader, failing: t.failing, index: t.index, queue: o.Queue,
		log: o.Log.WithValues("kind", "v1/Namespace"),
	}
	t.rechecks = &rechecks{with: o, watches: t.watches, index: t.index, failing: t.failing}
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

// Follow handles the workloads of kinds, until the context ends.
func (t *Tracking) Follow(ctx context.Context, kinds Kinds) {
	kinds.Follow(func(kind workload.Kind) { t.join(ctx, kind) }, t.stopKind)
}

// Recheck reads the objects of each watch that fails, again and again until the context ends. It runs on every replica; a standby reads
// config objects only.
func (t *Tracking) Recheck(ctx context.Context) error { return t.rechecks.run(ctx) }

// QueueAll queues every workload. A change of the digest keys does so, too: workloads that came without a key have waited for
// it, and what was recorded under a lost key must be adopted before the next change, which would be missed otherwise.
func (t *Tracking) QueueAll() { t.with.Queue.Add(queue.Workload, t.index.All()...) }

// Reindex enters what the workloads ask for once more, and queues them all.
func (t *Tracking) Reindex() {
	t.rereads.Add(1) // before the index is asked: what enters it from now on is read again
	for _, key := range t.index.All() {
		t.EnterAgain(key)
	}
	t.QueueAll()
}

// EnterAgain enters what a workload asks for once more: the index may keep its expressions now, which it had no memory for before.
func (t *Tracking) EnterAgain(key workload.Key) {
	w := t.watches.get(key.Kind)
	if w == nil {
		return
	}
	w.unlessGone(func() {
		// Within the lock, so that no later version has been entered.
		if s, ok := w.workloads.Get(key.Namespace, key.Name); ok {
			t.indexIntent(key, s)
		}
	})
}

// ConfigChanged is called by the watches of config objects. What was there before the watch began is found by comparing.
func (t *Tracking) ConfigChanged(e configstate.Event) {
	if !e.Initial {
		// Recorded before the index is asked: a workload that enters it from now on finds the change.
		t.recent.Put(index.Object{Namespace: e.Namespace, Ref: e.Ref}, index.Change{At: e.Received, ResourceVersion: e.ResourceVersion})
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

// join begins to handle a kind: its workloads enter the index as they are found.
func (t *Tracking) join(ctx context.Context, kind workload.Kind) {
	if kind.CreateOnly && !t.with.FollowJobs {
		return
	}
	if t.with.Joined != nil {
		t.with.Joined(kind)
	}
	w := &watched{kind: kind, stopped: make(chan struct{}), ended: ctx.Done()}
	w.workloads = t.with.Workloads(kind, func(before, after workload.Summary) { t.workloadChanged(w, before, after) })
	watching, stop := context.WithCancel(ctx)
	w.stop = stop
	t.watches.add(w)
	go func() {
		defer close(w.stopped)
		w.workloads.Run(watching)
	}()
}

// stopKind stops looking after a kind. Nothing is written: its workloads stay as they are. When it returns, nothing of the
// kind is cached, indexed or remembered any more, but for what is being treated at this moment: the queue brings that back,
// to be forgotten.
func (t *Tracking) stopKind(kind workload.Kind) {
	w := t.watches.remove(kind.ID())
	if w == nil {
		return
	}
	w.end()
	keys := t.index.DeleteKind(kind.ID())
	for _, key := range keys {
		t.Forget(key)
	}
	t.with.Queue.Add(queue.Workload, keys...)
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

// workloadChanged is called for each workload that comes, changes or goes; changes that cannot matter are dropped.
func (t *Tracking) workloadChanged(of *watched, before, after workload.Summary) {
	first, current, last := before, after, after
	if last.Kept == nil {
		last = before
	}
	key, gone := last.Key(), isGone(first, current)
	entered := gone && t.index.Has(key)
	if gone {
		// Here, since a standby treats nothing that is queued, and the end of a Job that is left alone queues nothing.
		t.with.State.Forget(key)
	}
	before, after = t.ifHandled(before), t.ifHandled(after)
	if entered {
		before = first // it was handled when it was entered
	}
	of.unlessGone(func() {
		if readLive := of.takeReadLive(last); !matters(before, after) && !readLive {
			return
		}
		if after = t.forgetUnhandled(before, after, current); gone || after.Kept == nil {
			t.index.Delete(key) // also where another one has the name: what that tracks is new, and may have changed recently
		}
		if gone {
			t.with.State.Changes.Forget(key) // until now, an event could find it in the index
		}
		if after.Kept == nil {
			t.with.Queue.Add(queue.Workload, key)
			return
		}
		t.born(first, after)
		t.update(before, after)
	})
}

// matters reports whether a change of a workload, as far as that is handled, can change what is due.
func matters(before, after workload.Summary) bool {
	if before.Kept == nil || after.Kept == nil {
		return before.Kept != nil || after.Kept != nil
	}
	return after.Matters(before)
}

// isGone reports whether a workload exists no more: it was deleted, perhaps with another one of its name since.
func isGone(before, current workload.Summary) bool {
	return before.Kept != nil && (current.Kept == nil || current.UID() != before.UID())
}

// forgetUnhandled forgets what is kept of a workload that is left alone from now on, and returns its version as far as configuration matters
// to it. The watch of config objects does not wait: a change that it has recorded before the Job finished counts.
func (t *Tracking) forgetUnhandled(before, after, current workload.Summary) workload.Summary {
	if before.Kept == nil || after.Kept != nil || isGone(before, current) || t.with.State.ForgetUnlessPending(before.Key()) {
		return after
	}
	after = t.ifHandled(current)
	if after.Kept == nil {
		t.with.State.Forget(before.Key())
	}
	return after
}

// born records the creation of a workload whose configuration is to be recorded, and forgets that of one that has a Record. A workload
// that was there before this process starts with what is found now: an installation restarts nothing. A listing can replace a
// workload by another one of its name at once.
func (t *Tracking) born(before, after workload.Summary) {
	key, another := after.Key(), before.Kept == nil || before.UID() != after.UID()
	created := another && !after.Created().Before(t.began)
	if !created && t.with.State.Creations.Version(key) == "" {
		return
	}
	switch recorded := after.Annotations()[t.with.Reader.Keys.ConfigRecord] != ""; {
	case recorded:
		t.with.State.Creations.Forget(key)
	case created && t.intent(after).Asked:
		t.with.State.Creations.Created(key, after.ResourceVersion())
	}
}

// ifHandled returns a workload, or none if it is a Job that is left alone: that is not tracked.
func (t *Tracking) ifHandled(s workload.Summary) workload.Summary {
	if s.Kept != nil && t.with.Ignores(s, t.with.State.Changes.HasPending(s.Key())) {
		s.Kept = nil
	}
	return s
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

func (t *Tracking) update(before, s workload.Summary) {
	key := s.Key()
	t.with.State.Deferrals.Written(key)
	intent := t.enter(key, s)
	// A label starts no pod. It may be what selects a workload of which nothing is recorded: that starts from what it finds.
	if intent.Appearing() && (s.Written(before) || s.Annotations()[t.with.Reader.Keys.ConfigRecord] == "") {
		t.with.State.Versions.Changed(key, s.ResourceVersion())
	}
	t.with.Queue.Add(queue.Workload, key)
}

// enter puts into the index what a workload asks for, and returns that. What the index did not have before may have changed recently.
func (t *Tracking) enter(key workload.Key, s workload.Summary) annotation.Intent {
	intent, added := t.indexIntent(key, s)
	for _, ref := range added {
		if change, ok := t.recent.Get(index.Object{Namespace: key.Namespace, Ref: ref}, t.with.Now()); ok && !startsWith(s, change) {
			t.with.State.Changes.EventArrived(key, change.At)
		}
	}
	return intent
}

// startsWith reports whether a workload is a Job whose pods start with a change: it was made before this version of the Job. Such a
// change is no reason to look at the Job once more after it has finished.
func startsWith(s workload.Summary, change index.Change) bool {
	if !s.Kind.CreateOnly {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(change.ResourceVersion, s.ResourceVersion())
	return err == nil && order < 0
}

// indexIntent puts into the index what a workload asks for, and returns that, and what the index did not have before. Where all are reread
// meanwhile, the workload may have been read as before, and not be among all yet: it is read again.
func (t *Tracking) indexIntent(key workload.Key, s workload.Summary) (intent annotation.Intent, added []reference.Ref) {
	for {
		reads := t.rereads.Load()
		intent = t.intent(s)
		added = append(added, t.index.Set(key, intent)...)
		if t.rereads.Load() == reads {
			return intent, added
		}
	}
}

// intent returns what can cause a reload of a workload, with what it selects unresolved.
func (t *Tracking) intent(s workload.Summary) annotation.Intent {
	if s.Kind.CreateOnly {
		return t.with.Reader.Intent(s).AtOnce()
	}
	return t.with.Reader.Intent(s)
}
