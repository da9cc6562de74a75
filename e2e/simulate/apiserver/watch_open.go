package apiserver

import (
	"slices"
	"strconv"
	"time"
)

const (
	// shortestWatch is how long a watch lasts at least if the client does not say; kube-apiserver draws up to twice that.
	shortestWatch = 30 * time.Minute
	// bookmarkPeriod is the time between bookmarks; bookmarkAhead is how long before its end a watch gets the last.
	bookmarkPeriod = time.Minute
	bookmarkAhead  = 2 * time.Second
)

// newWatch reads the request for a watch.
func (s *Server) newWatch(q *request) (*Watch, error) {
	sel, err := q.selection()
	if err != nil {
		return nil, err
	}
	w := &Watch{
		Client: q.call.Client, Key: q.call.Key, Call: q.call, request: q, server: s, sel: sel,
		bookmarks: q.query.Get("allowWatchBookmarks") == "true", wake: make(chan struct{}, 1),
	}
	options, err := q.listOptions()
	if err != nil {
		return nil, err
	}
	w.streaming = options.SendInitialEvents != nil && *options.SendInitialEvents
	if _, err := parseVersion(q.query.Get("resourceVersion")); err != nil {
		return nil, err
	}
	w.Number = s.watches.Add(1)
	lasts := shortestWatch + time.Duration(w.Number*97%1800)*time.Second
	if seconds, err := strconv.ParseInt(q.query.Get("timeoutSeconds"), 10, 64); err == nil && seconds > 0 {
		lasts = time.Duration(seconds) * time.Second
	}
	w.deadline = time.Now().Add(lasts)
	return w, nil
}

// open registers a watch and finds where it starts.
func (s *store) open(w *Watch) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[w.request.kind]
	query := w.request.query
	text := query.Get("resourceVersion")
	shown, _ := parseVersion(text)
	wanted := s.knownLocked(shown)
	known := max(s.version-max(w.request.fate.Lag, 0), s.firstLocked())
	start := wanted
	switch {
	case w.streaming && wanted > s.version:
		return 0, errTooLarge(shown, s.version-s.shift)
	case w.streaming && text == "":
		// A consistent read: the state is as new as the request.
		start = s.version
	case w.streaming, wanted == 0:
		start = max(known, wanted)
	case wanted < s.compacted:
		return 0, errExpired(shown, s.compacted-s.shift)
	}
	if w.streaming || (wanted == 0 && query.Get("sendInitialEvents") != "false") {
		w.initial, _ = s.listLocked(t.kind, w.sel, start)
	}
	w.next, _ = slices.BinarySearchFunc(t.log, start+1, func(c change, version int64) int {
		return int(c.then.version - version)
	})
	if w.request.fate.Lag > 0 && w.next < len(t.log) {
		w.server.behind.Add(1)
	}
	t.watches = append(t.watches, w)
	return start, nil
}

// close forgets a watch.
func (s *store) close(w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[w.request.kind]
	t.watches = slices.DeleteFunc(t.watches, func(other *Watch) bool { return other == w })
}

// schedule has the times of the bookmarks of a watch.
type schedule struct{ next, last time.Time }

func newSchedule(start, deadline time.Time) *schedule {
	s := &schedule{next: start, last: deadline.Add(-bookmarkAhead)}
	s.advance()
	return s
}

// advance goes to the next bookmark: after a period, but in time before the end.
func (s *schedule) advance() {
	from := s.next
	s.next = from.Add(bookmarkPeriod)
	if from.Before(s.last) && s.next.After(s.last) {
		s.next = s.last
	}
}
