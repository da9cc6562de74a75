package apiserver

import (
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stream writes the events of a watch.
type stream struct {
	w     http.ResponseWriter
	flush func() error
	media media
	// cut is how many bytes are still sent before the connection breaks; negative means all.
	cut int
}

func newStream(w http.ResponseWriter, q *request) *stream {
	s := &stream{w: w, flush: http.NewResponseController(w).Flush, media: q.media, cut: -1}
	if q.fate.CutAfter > 0 {
		s.cut = q.fate.CutAfter
	}
	return s
}

// begin sends the header.
func (s *stream) begin() {
	s.w.Header().Set("Content-Type", s.media.streamType())
	s.w.WriteHeader(http.StatusOK)
	_ = s.flush()
}

// write sends bytes and breaks the connection where it is to be cut.
func (s *stream) write(data []byte) error {
	if s.cut >= 0 && len(data) >= s.cut {
		_, _ = s.w.Write(data[:s.cut])
		_ = s.flush()
		panic(http.ErrAbortHandler)
	}
	if s.cut >= 0 {
		s.cut -= len(data)
	}
	n, err := s.w.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}

// event sends one event.
func (s *stream) event(kind watch.EventType, body []byte) error {
	return s.write(frame(string(kind), body, s.media))
}

// fail sends an error event.
func (s *stream) fail(err error) {
	_ = s.event(watch.Error, statusBody(statusOf(err), s.media))
	_ = s.flush()
}

// deliver sends everything that is new; false means that the client is gone.
func (w *Watch) deliver(out *stream) bool {
	if !w.opened && !w.begin(out) {
		return false
	}
	for {
		changes := w.pending()
		if len(changes) == 0 {
			return true
		}
		for n := range changes {
			if !w.sendChange(out, &changes[n]) {
				return false
			}
		}
		if out.flush() != nil {
			return false
		}
		if held, end := w.state(); held || end != goesOn {
			return true
		}
	}
}

// begin sends the initial events, and the bookmark behind them.
func (w *Watch) begin(out *stream) bool {
	w.opened = true
	short := w.streaming && w.request.fate.Short > 0
	if short {
		w.initial = w.initial[:max(len(w.initial)-w.request.fate.Short, 0)]
	}
	for _, i := range w.initial {
		if out.event(watch.Added, i.body(out.media)) != nil {
			return false
		}
	}
	w.initial = nil
	if short {
		return w.stopShort(out)
	}
	if w.streaming && w.bookmarks {
		mark := w.mark(w.started)
		metaOf(mark).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		if out.event(watch.Bookmark, newItem(w.request.kind, mark).body(out.media)) != nil {
			return false
		}
	}
	return out.flush() == nil
}

// stopShort ends a streaming list before its bookmark, or leaves it open for nothing to follow. It returns false: the client gets no more.
func (w *Watch) stopShort(out *stream) bool {
	if out.flush() == nil && w.request.fate.Hang {
		<-w.request.ctx.Done()
	}
	return false
}

// pending returns the changes that were not looked at yet.
func (w *Watch) pending() []change {
	s := w.server.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	log := s.tables[w.request.kind].log
	changes := log[w.next:]
	w.next = len(log)
	return changes
}

// superseded returns how many of some changes are followed by another one of the same object.
func superseded(changes []change) int64 {
	last := map[name]bool{}
	for n := range changes {
		last[changes[n].name] = true
	}
	return int64(len(changes) - len(last))
}

// sendChange sends what a change is for this selection, if it is anything; false means that the client is gone.
func (w *Watch) sendChange(out *stream, c *change) bool {
	if c.then.version <= w.started {
		return true // the client asked for what comes after a version of the future
	}
	before := c.before != nil && w.sel.matches(c.before)
	now := !c.then.gone && w.sel.matches(c.then)
	var err error
	switch {
	case before && now:
		err = out.event(watch.Modified, c.then.body(out.media))
	case now:
		err = out.event(watch.Added, c.then.body(out.media))
	case before && c.then.gone:
		err = out.event(watch.Deleted, c.then.body(out.media))
	case before:
		// The last state that the client could see, with the version of the change.
		err = out.event(watch.Deleted, c.before.at(c.then.version, c.then.meta().ResourceVersion).body(out.media))
	}
	return err == nil
}

// mark returns the object in a bookmark: nothing but a version.
func (w *Watch) mark(version int64) object {
	o := w.request.kind.make()
	metaOf(o).ResourceVersion = w.server.store.textOf(version)
	return o
}

// bookmark sends what is pending, then a bookmark with the version up to which that is all.
func (w *Watch) bookmark(out *stream) {
	if !w.deliver(out) {
		return
	}
	s := w.server.store
	s.mu.RLock()
	version, behind := s.version, w.next < len(s.tables[w.request.kind].log)
	s.mu.RUnlock()
	if behind || version < w.started {
		return
	}
	if out.event(watch.Bookmark, newItem(w.request.kind, w.mark(version)).body(out.media)) == nil {
		_ = out.flush()
	}
}
