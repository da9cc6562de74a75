package reload

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"

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
	kind workload.Kind
	stop context.CancelFunc
	// stopped is closed when the informer is gone, ended when the program ends.
	stopped chan struct{}
	ended   <-chan struct{}

	mu sync.Mutex
	// gone tells that no event is wanted any more; informers deliver some after their end.
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

// join begins to look after a kind: its workloads enter the index as the informer finds them.
func (l *loop) join(ctx context.Context, kind workload.Kind, log logr.Logger) {
	if kind.CreateOnly {
		return
	}
	w := &watched{kind: kind, stopped: make(chan struct{}), ended: ctx.Done()}
	watching, stop := context.WithCancel(ctx)
	w.stop = stop
	l.watches.add(w)
	go func() {
		defer close(w.stopped)
		l.attach(watching, emptyObject(kind), log, workloadHandler{l, w})
		<-watching.Done()
		if ctx.Err() == nil {
			l.removeInformer(ctx, kind, log)
		}
	}()
}

// removeInformer ends the watch of a kind that is not looked after any more, and frees what it had cached.
func (l *loop) removeInformer(ctx context.Context, kind workload.Kind, log logr.Logger) {
	if err := l.cache.RemoveInformer(ctx, emptyObject(kind)); err != nil {
		log.Error(err, "Cannot stop watching this workload kind; what it tells is not listened to")
	}
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

var _ toolscache.ResourceEventHandler = workloadHandler{}
