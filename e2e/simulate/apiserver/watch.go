package apiserver

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Watch is one open watch. Its methods may be called from anywhere; they do not wait until the watch has noticed.
type Watch struct {
	// Number counts the watches in the order in which they open, from 1.
	Number int64
	// Client is the one that watches, Key what: the name is empty. Call is the request.
	Client string
	Key    world.Key
	Call   *world.Call

	request *request
	server  *Server
	sel     selection
	// bookmarks says that the client asked for them, streaming that it asked for the state as initial events.
	bookmarks, streaming bool
	// deadline is when the watch ends by itself.
	deadline time.Time
	wake     chan struct{}

	// initial is the state at the start, sent before the changes of the log from next on, which are those after the
	// version started. Only the goroutine of the request uses these fields.
	initial []*item
	started int64
	next    int
	opened  bool

	mu   sync.Mutex
	held bool
	end  ending
}

// ending is how a watch ends.
type ending int

const (
	goesOn ending = iota
	closed
	broken
	expired
)

// Hold withholds events and bookmarks from now on. What is being sent may still arrive.
func (w *Watch) Hold() { w.set(func() { w.held = true }) }

// Release sends what was withheld, and goes on.
func (w *Watch) Release() { w.set(func() { w.held = false }) }

// Held reports whether events are withheld.
func (w *Watch) Held() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

// Close ends the response, as a server does whose timeout for watches is over.
func (w *Watch) Close() { w.finish(closed) }

// Break closes the connection in the middle of the response.
func (w *Watch) Break() { w.finish(broken) }

// Expire sends an event that says that the version is too old, and ends the response.
func (w *Watch) Expire() { w.finish(expired) }

func (w *Watch) finish(e ending) {
	w.set(func() {
		if w.end == goesOn {
			w.end = e
		}
	})
}

func (w *Watch) set(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
	w.wakeUp()
}

// wakeUp makes the watch look for what is new.
func (w *Watch) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watch) state() (held bool, end ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held, w.end
}

// Watches returns the open watches by their numbers.
func (s *Server) Watches() []*Watch {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	var all []*Watch
	for _, k := range s.kinds {
		all = append(all, s.store.tables[k].watches...)
	}
	slices.SortFunc(all, func(a, b *Watch) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// watch serves a watch until it ends.
func (s *Server) watch(rw http.ResponseWriter, q *request) {
	w, err := s.newWatch(q)
	if err != nil {
		q.answer(rw, q.failed(err))
		return
	}
	if q.fate.Lose {
		panic(http.ErrAbortHandler)
	}
	from, err := s.store.open(w)
	defer s.store.close(w)
	stream := newStream(rw, q)
	if err != nil {
		// kube-apiserver opens the response and fails in it.
		stream.begin()
		stream.fail(err)
		return
	}
	w.started = from
	if s.options.OnWatch != nil {
		s.options.OnWatch(w)
	}
	stream.begin()
	w.run(stream)
}

// run sends events until the watch ends.
func (w *Watch) run(out *stream) {
	ctx, cancel := context.WithDeadline(w.request.ctx, w.deadline)
	defer cancel()
	schedule := newSchedule(time.Now(), w.deadline)
	timer := time.NewTimer(time.Until(schedule.next))
	defer timer.Stop()
	if w.request.fate.Held {
		if !w.begin(out) {
			return
		}
		w.Hold()
	}
	for {
		held, end := w.state()
		if end != goesOn {
			w.leave(out, end)
			return
		}
		if !held && !w.deliver(out) {
			return
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		case <-timer.C:
			schedule.advance()
			timer.Reset(time.Until(schedule.next))
			if held, _ := w.state(); w.bookmarks && !held {
				// What is stored goes first: a bookmark says that everything before it was sent.
				w.bookmark(out)
			}
		}
	}
}

func (w *Watch) leave(out *stream, end ending) {
	switch end {
	case goesOn, closed:
	case broken:
		panic(http.ErrAbortHandler)
	case expired:
		w.server.folded.Add(superseded(w.pending()))
		store := w.server.store
		out.fail(errExpired(store.shown(w.started), store.shown(store.now())))
	}
}
