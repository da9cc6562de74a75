package reload

import (
	"context"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// tracking knows the workloads and what they track, and queues those that a change concerns. It is safe for concurrent use.
type tracking struct {
	reader  stamp.Reader
	jobs    Jobs
	follow  func(kind workload.Kind, changed func(before, after workload.Summary)) Workloads
	watches *watches
	index   *index.Index
	recent  *index.Recent
	state   *state.State
	backoff state.Backoff
	queue   *queue.Queue
	now     func() time.Time
}

// queueAll queues every workload. A change of the digest keys does so, too: workloads that came without a key have waited for
// it, and what was recorded under a lost key must be adopted before the next change, which would be missed otherwise.
func (t *tracking) queueAll() { t.queue.Add(queue.Workload, t.index.All()...) }

// configChanged is called by the watches of config objects. What was there before the watch began is found by comparing.
func (t *tracking) configChanged(e configstate.Event) {
	if !e.Initial {
		// Recorded before the index is asked: a workload that enters it from now on finds the change.
		t.recent.Put(index.Object{Namespace: e.Namespace, Ref: e.Ref}, e.Received)
	}
	keys := t.index.Concerned(e)
	// What settles is queued already: under constant change each event would have each of its trackers looked at.
	keys = slices.DeleteFunc(keys, func(key workload.Key) bool { return t.state.Changes.Changed(key, e.Received) })
	t.queue.Add(queue.Config, keys...)
}

// join begins to look after a kind: its workloads enter the index as they are found.
func (t *tracking) join(ctx context.Context, kind workload.Kind) {
	if kind.CreateOnly && !t.jobs.Follow {
		return
	}
	w := &watched{kind: kind, stopped: make(chan struct{}), ended: ctx.Done()}
	w.workloads = t.follow(kind, func(before, after workload.Summary) { t.workloadChanged(w, before, after) })
	watching, stop := context.WithCancel(ctx)
	w.stop = stop
	t.watches.add(w)
	go func() {
		defer close(w.stopped)
		w.workloads.Run(watching)
	}()
}

// leave stops looking after a kind. Nothing is written: its workloads stay as they are. When it returns, nothing of the
// kind is cached, indexed or remembered any more, but for what is being treated at this moment: the queue brings that back,
// to be forgotten.
func (t *tracking) leave(kind workload.Kind) {
	w := t.watches.remove(kind.ID())
	if w == nil {
		return
	}
	w.end()
	keys := t.index.DeleteKind(kind.ID())
	for _, key := range keys {
		t.forget(key)
	}
	t.queue.Add(queue.Workload, keys...)
}

// forget drops what is kept of a workload.
func (t *tracking) forget(key workload.Key) {
	t.state.Forget(key)
	t.backoff.Forget(key)
}

// workloadChanged is called for each workload that comes, changes or goes; changes that cannot matter are dropped.
func (t *tracking) workloadChanged(of *watched, before, after workload.Summary) {
	before, after = t.concerned(before), t.concerned(after)
	if before.Kept == nil && after.Kept == nil || before.Kept != nil && after.Kept != nil && !after.Matters(before) {
		return
	}
	of.unlessGone(func() {
		if before.Kept != nil && (after.Kept == nil || before.UID() != after.UID()) {
			// Here too, since a standby treats nothing that is queued.
			t.state.Forget(before.Key())
		}
		if after.Kept != nil {
			t.update(after)
			return
		}
		t.index.Delete(before.Key())
		t.queue.Add(queue.Workload, before.Key())
	})
}

// concerned returns a workload as far as configuration matters to it: a Job that is left alone is as good as none.
func (t *tracking) concerned(s workload.Summary) workload.Summary {
	if s.Kept != nil && t.jobs.leaves(s) {
		s.Kept = nil
	}
	return s
}

func (t *tracking) update(s workload.Summary) {
	key := s.Key()
	for _, ref := range t.index.Enter(key, t.intent(s)) {
		if at, ok := t.recent.At(index.Object{Namespace: key.Namespace, Ref: ref}, t.now()); ok {
			t.state.Changes.Changed(key, at)
		}
	}
	t.queue.Add(queue.Workload, key)
}

// intent returns what can cause a reload of a workload, with what it selects unresolved.
func (t *tracking) intent(s workload.Summary) annotation.Intent {
	if s.Kind.CreateOnly {
		return t.reader.Intent(s).AtOnce()
	}
	return t.reader.Intent(s)
}
