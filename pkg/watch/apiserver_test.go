package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// apiServer speaks list and watch over HTTP for one resource of any name, in
// memory, so that it works in a bubble of fake time. It does what the real one
// does for an informer: resourceVersions, streamed lists with bookmarks, label
// transitions, 410 after a compaction. Requests for a namespace see that one.
type apiServer struct {
	conns chan net.Conn

	mu       sync.Mutex
	version  int
	oldest   int // events up to here are compacted
	objects  map[string]*unstructured.Unstructured
	history  []change
	changed  chan struct{} // closed at every change
	drop     chan struct{} // closed to end the streams
	inject   *metav1.Status
	requests []url.Values
	faults   faults
}

// faults are what new requests run into.
type faults struct {
	refuse       bool
	status       int // of the answer, if not 0
	noStreamList bool
}

type change struct {
	version int
	kind    string
	before  *unstructured.Unstructured
	now     *unstructured.Unstructured
}

func newServer(tb testing.TB, objects ...*unstructured.Unstructured) *apiServer {
	tb.Helper()
	s := &apiServer{
		conns: make(chan net.Conn), version: 1000,
		objects: map[string]*unstructured.Unstructured{}, changed: make(chan struct{}), drop: make(chan struct{}),
	}
	server := &http.Server{Handler: s}
	go server.Serve(s) //nolint:errcheck // ends with ErrServerClosed
	tb.Cleanup(func() { assert.NoError(tb, server.Close()) })
	for _, object := range objects {
		s.Create(object)
	}
	return s
}

// client is a real dynamic client for the server.
func (s *apiServer) client(tb testing.TB) dynamic.Interface {
	tb.Helper()
	transport := &http.Transport{DialContext: s.dial, DisableKeepAlives: true}
	client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://server", QPS: -1}, &http.Client{Transport: transport})
	require.NoError(tb, err)
	return client
}

func (s *apiServer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.mu.Lock()
	refuse := s.faults.refuse
	s.mu.Unlock()
	if refuse {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	select {
	case s.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept, Close and Addr make the server its own listener.
func (s *apiServer) Accept() (net.Conn, error) {
	conn, ok := <-s.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (s *apiServer) Close() error   { close(s.conns); return nil }
func (s *apiServer) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// Create, Update and Delete set a new resourceVersion. Generation and UID are
// the test's affair.
func (s *apiServer) Create(object *unstructured.Unstructured) { s.write("ADDED", object) }
func (s *apiServer) Update(object *unstructured.Unstructured) { s.write("MODIFIED", object) }
func (s *apiServer) Delete(object *unstructured.Unstructured) { s.write("DELETED", object) }

func (s *apiServer) write(kind string, object *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	object = object.DeepCopy()
	object.SetResourceVersion(strconv.Itoa(s.version))
	key := object.GetNamespace() + "/" + object.GetName()
	s.history = append(s.history, change{s.version, kind, s.objects[key], object})
	s.objects[key] = object
	if kind == "DELETED" {
		delete(s.objects, key)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Compact forgets the history: who asks for it gets 410.
func (s *apiServer) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest, s.history = s.version, nil
}

// Drop ends all streams, with an error event if a status is given.
func (s *apiServer) Drop(status *metav1.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject = status
	close(s.drop)
	s.drop = make(chan struct{})
}

// Fault changes what new requests run into.
func (s *apiServer) Fault(faults faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

// Requests are the queries that came in.
func (s *apiServer) Requests() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	s.requests = append(s.requests, q)
	faults := s.faults
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case faults.status != 0:
		fail(w, faults.status, metav1.StatusReasonInternalError)
	case q.Get("sendInitialEvents") == "true" && faults.noStreamList:
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case q.Get("watch") != "":
		s.serveWatch(w, r, selection(r.URL))
	default:
		s.serveList(w, selection(r.URL))
	}
}

// selection is what namespace, labels and name of a request choose.
func selection(u *url.URL) func(*unstructured.Unstructured) bool {
	selector, err := labels.Parse(u.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	_, after, inNamespace := strings.Cut(u.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(after, "/")
	name, byName := strings.CutPrefix(u.Query().Get("fieldSelector"), "metadata.name=")
	return func(object *unstructured.Unstructured) bool {
		return object != nil && selector.Matches(labels.Set(object.GetLabels())) &&
			(!inNamespace || object.GetNamespace() == namespace) && (!byName || object.GetName() == name)
	}
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	send(w, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "injected",
	})
}

func send(w io.Writer, value any) {
	if err := json.NewEncoder(w).Encode(value); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return // the client has gone
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
}

func (s *apiServer) serveList(w http.ResponseWriter, chosen func(*unstructured.Unstructured) bool) {
	items, version := s.snapshot(chosen)
	send(w, map[string]any{
		"apiVersion": "v1", "kind": "List", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version)},
	})
}

func (s *apiServer) snapshot(chosen func(*unstructured.Unstructured) bool) ([]map[string]any, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []map[string]any{}
	for _, object := range s.objects {
		if chosen(object) {
			items = append(items, object.Object)
		}
	}
	return items, s.version
}

func (s *apiServer) serveWatch(w http.ResponseWriter, r *http.Request, chosen func(*unstructured.Unstructured) bool) {
	s.mu.Lock()
	drop, oldest := s.drop, s.oldest
	s.mu.Unlock()
	q := r.URL.Query()
	version, _ := strconv.Atoi(q.Get("resourceVersion"))
	if q.Get("sendInitialEvents") == "true" {
		var items []map[string]any
		items, version = s.snapshot(chosen)
		for _, item := range items {
			event(w, "ADDED", item)
		}
		event(w, "BOOKMARK", bookmark(version))
	} else if version < oldest {
		fail(w, http.StatusGone, metav1.StatusReasonExpired)
		return
	} else if version == 0 {
		items, current := s.snapshot(chosen)
		for _, item := range items {
			event(w, "ADDED", item)
		}
		version = current
	}
	w.(http.Flusher).Flush() // headers out, so that the client's request returns
	s.stream(w, r, chosen, version, drop)
}

func bookmark(version int) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Bookmark", "metadata": map[string]any{
		"resourceVersion": strconv.Itoa(version),
		"annotations":     map[string]any{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

func event(w io.Writer, kind string, object any) {
	send(w, map[string]any{"type": kind, "object": object})
}

// stream sends what comes after the version until somebody ends it.
func (s *apiServer) stream(
	w http.ResponseWriter, r *http.Request, chosen func(*unstructured.Unstructured) bool, version int, drop chan struct{},
) {
	for {
		s.mu.Lock()
		news, changed := slices.Clone(s.history), s.changed
		s.mu.Unlock()
		for _, c := range news {
			if c.version > version {
				version = c.version
				c.sendTo(w, chosen)
			}
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-drop:
			s.mu.Lock()
			status := s.inject
			s.mu.Unlock()
			if status != nil {
				event(w, "ERROR", status)
			}
			return
		}
	}
}

// sendTo makes a transition of labels an addition or a deletion, as the real
// server does.
func (c change) sendTo(w io.Writer, chosen func(*unstructured.Unstructured) bool) {
	before, now := chosen(c.before), chosen(c.now)
	switch {
	case c.kind == "DELETED" && before, before && !now:
		event(w, "DELETED", c.now.Object)
	case c.kind != "DELETED" && now && !before:
		event(w, "ADDED", c.now.Object)
	case c.kind != "DELETED" && now:
		event(w, "MODIFIED", c.now.Object)
	}
}
