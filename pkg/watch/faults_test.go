package watch_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// faults are what new requests to the apiServer run into.
type faults struct {
	refuse       bool
	status       int // of the answer, if not 0
	listStatus   int // of that to a list, which is not streamed
	retryAfter   string
	noStreamList bool
	// hang accepts the request and never answers.
	hang bool
	// hangAfter does so after so many requests, if it is not 0.
	hangAfter int
	// hangGet does so with requests for one object.
	hangGet bool
	// unserved answers these as an API server does that does not serve a new
	// custom resource yet.
	unserved bool
	// short ends every watch at once.
	short bool
	// watchStatus is the status of the answer to every watch, watchError the only event of it.
	watchStatus int
	watchError  *metav1.Status
	// onlyBookmark ends every watch, but not a streamed list, behind a bookmark.
	onlyBookmark bool
	// warn is a warning in every answer.
	warn string
	// mute answers a watch and never sends an event; it ends it after muteFor,
	// if that is not 0, as a client's transport does.
	mute    bool
	muteFor time.Duration
	// ignoreStreamedList takes one for a watch, and sends a bookmark.
	ignoreStreamedList bool
	// endStreamedList ends one before the bookmark that completes it.
	endStreamedList bool
	// endAfterStreamedList ends one behind that bookmark.
	endAfterStreamedList bool
	// expireAfterStreamedList sends the error of an expired version there.
	expireAfterStreamedList bool
	// breakStreamedList breaks the connection there.
	breakStreamedList bool
	// lose breaks the connection when the request has been sent, with this error.
	lose error
	// noNamespaceField rejects a field selector with the namespace, as for Nodes and Namespaces.
	noNamespaceField bool
	// end ends the body of a list too early.
	end func(w http.ResponseWriter, list map[string]any)
}

// reasons that go with a status.
var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusNotFound:            metav1.StatusReasonNotFound,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
}

// endWatch answers a watch that has no events of objects.
func (f faults) endWatch(w http.ResponseWriter) (ended bool) {
	switch {
	case f.watchStatus != 0:
		fail(w, f.watchStatus, reasons[f.watchStatus])
	case f.watchError != nil:
		event(w, "ERROR", f.watchError)
	}
	return f.short || f.watchStatus != 0 || f.watchError != nil
}

// sendList answers a list.
func (f faults) sendList(w http.ResponseWriter, list map[string]any) {
	if f.end != nil {
		f.end(w, list)
		return
	}
	send(w, list)
}

func (f faults) endsAfterStreamedList(w http.ResponseWriter) bool {
	if f.expireAfterStreamedList {
		event(w, "ERROR", failure(http.StatusGone, "Expired"))
	}
	return f.endAfterStreamedList || f.expireAfterStreamedList
}

// Fault changes what new requests run into.
func (s *apiServer) Fault(faults faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

func (s *apiServer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.mu.Lock()
	faults := s.faults
	s.mu.Unlock()
	if faults.refuse {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	w := &wire{Conn: near, opening: faults.lose, wrote: make(chan struct{})}
	select {
	case s.conns <- far:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wires = append(s.wires, w)
		return w, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	send(w, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "injected",
	})
}

// Compact forgets the history: a request for it gets 410.
func (s *apiServer) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest, s.history = s.version, nil
}

// Restore goes back to a state at which there were these objects.
func (s *apiServer) Restore(version int, objects ...*unstructured.Unstructured) {
	s.mu.Lock()
	s.version, s.history, s.objects = version, nil, map[string]*unstructured.Unstructured{}
	s.mu.Unlock()
	for _, object := range objects {
		s.Create(object)
	}
}

// Drop ends all streams, with an error event if a status is given.
func (s *apiServer) Drop(status *metav1.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject = status
	close(s.drop)
	s.drop = make(chan struct{})
}

// Break breaks all connections: the client reads the error.
func (s *apiServer) Break(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.wires {
		w.lose(err)
	}
	s.wires = nil
}

// Bookmark sends a bookmark to all streams.
func (s *apiServer) Bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.history = append(s.history, change{version: s.version, kind: "BOOKMARK"})
	close(s.changed)
	s.changed = make(chan struct{})
}

// wire is the client's end of a connection.
type wire struct {
	net.Conn

	opening error // breaks it when the request has been written
	wrote   chan struct{}
	once    sync.Once

	mu   sync.Mutex
	lost error
}

func (w *wire) lose(err error) {
	w.mu.Lock()
	w.lost = err
	w.mu.Unlock()
	_ = w.Close()
}

func (w *wire) Write(from []byte) (int, error) {
	defer w.once.Do(func() { close(w.wrote) })
	return w.Conn.Write(from)
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.wrote) })
	return w.Conn.Close()
}

func (w *wire) Read(into []byte) (int, error) {
	if w.opening != nil {
		<-w.wrote
		w.lose(w.opening)
	}
	n, err := w.Conn.Read(into)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.lost != nil {
		err = w.lost
	}
	return n, err
}

// afterOneItem is the beginning of a list, up to the end of its first item.
func afterOneItem(list map[string]any) []byte {
	items, _ := list["items"].([]map[string]any)
	first, err := json.Marshal(items[0])
	if err != nil {
		panic(err)
	}
	return append([]byte(`{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"9999"},"items":[`), first...)
}

// The ways in which a body ends after an item: with the last chunk, as if it
// were whole; before the length that the header gives; with the connection.
func endCleanly(w http.ResponseWriter, list map[string]any) {
	_, _ = w.Write(afterOneItem(list))
}

func endBeforeLength(w http.ResponseWriter, list map[string]any) {
	part := afterOneItem(list)
	w.Header().Set("Content-Length", strconv.Itoa(len(part)+1000))
	_, _ = w.Write(part)
	panic(http.ErrAbortHandler)
}

func endWithConnection(w http.ResponseWriter, list map[string]any) {
	_, _ = w.Write(afterOneItem(list))
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}
