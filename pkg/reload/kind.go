package reload

import (
	"context"
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Kinds are the kinds of workloads to look after; live.Kinds are some.
type Kinds interface {
	// Follow calls join for every kind there is and for each that comes, leave for each that goes; never two at once. A
	// kind whose pod template moves goes and comes.
	Follow(join, leave func(workload.Kind))
}

// watched is one kind for as long as it is looked after.
type watched struct {
	kind      workload.Kind
	workloads Workloads
	stop      context.CancelFunc
	// stopped is closed when the workloads are not followed any more, ended when the program ends.
	stopped chan struct{}
	ended   <-chan struct{}

	mu sync.Mutex
	// gone tells that no event is wanted any more: one may be on its way.
	gone bool
}

// unlessGone handles an event.
func (w *watched) unlessGone(handle func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone {
		handle()
	}
}

// watches has the kinds that are looked after, by ID. It is safe for concurrent use.
type watches struct {
	mu   sync.RWMutex
	byID map[string]*watched
}

func newWatches() *watches { return &watches{byID: map[string]*watched{}} }

func (x *watches) get(id string) *watched {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byID[id]
}

func (x *watches) add(w *watched) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.byID[w.kind.ID()] = w
}

func (x *watches) remove(id string) *watched {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.byID[id]
	delete(x.byID, id)
	return w
}

// join begins to look after a kind: its workloads enter the index as they are found.
func (l *loop) join(ctx context.Context, kind workload.Kind) {
	if kind.CreateOnly {
		return
	}
	w := &watched{kind: kind, stopped: make(chan struct{}), ended: ctx.Done()}
	w.workloads = l.follow(kind, workloadHandler{l, w}.changed)
	watching, stop := context.WithCancel(ctx)
	w.stop = stop
	l.watches.add(w)
	go func() {
		defer close(w.stopped)
		w.workloads.Run(watching)
	}()
}

// leave stops looking after a kind. Nothing is written: its workloads stay as they are. When it returns, nothing of the
// kind is cached, indexed or remembered any more, but for what is being treated at this moment: the queue brings that back,
// to be forgotten.
func (l *loop) leave(kind workload.Kind) {
	w := l.watches.remove(kind.ID())
	if w == nil {
		return
	}
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	w.stop()
	select {
	case <-w.stopped:
	case <-w.ended:
	}
	keys := l.index.DeleteKind(kind.ID())
	for _, key := range keys {
		l.memory.Forget(key)
		l.backoff.forget(key)
	}
	l.add(priorityWorkload, keys...)
}
