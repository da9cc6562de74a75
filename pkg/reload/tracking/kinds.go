package tracking

import (
	"context"

	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Follow handles the workloads of kinds, until the context ends.
func (t *Tracking) Follow(ctx context.Context, kinds Kinds) {
	kinds.Follow(func(kind workload.Kind) { t.join(ctx, kind) }, t.stopKind)
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
	w.workloads = t.with.Workloads(kind, func(before, after workload.Summary, listed string) {
		t.changes.changed(w, before, after, listed)
	})
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
