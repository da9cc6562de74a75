package watch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
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
	oldest   int // versions before are compacted
	objects  map[string]*unstructured.Unstructured
	history  []change
	changed  chan struct{} // closed at every change
	drop     chan struct{} // closed to end the streams
	inject   *metav1.Status
	requests []request
	faults   faults
	wires    []*wire
	// clusterScoped says that the resource has no namespaces.
	clusterScoped bool
}

// request is a request that came in: path, query and time.
type request struct {
	url.Values

	path string
	at   time.Time
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
	return s.clientWith(tb, func(next http.RoundTripper) http.RoundTripper { return next })
}

// clientWith is a client with another transport around its own.
func (s *apiServer) clientWith(tb testing.TB, wrap func(http.RoundTripper) http.RoundTripper) dynamic.Interface {
	tb.Helper()
	transport := wrap(&http.Transport{DialContext: s.dial, DisableKeepAlives: true})
	client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://server", QPS: -1}, &http.Client{Transport: transport})
	require.NoError(tb, err)
	return client
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

// Convert serves another representation of the object under the same
// resourceVersion, as after a new default in a CustomResourceDefinition. The
// server sends no event for it.
func (s *apiServer) Convert(object *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object = object.DeepCopy()
	key := object.GetNamespace() + "/" + object.GetName()
	object.SetResourceVersion(s.objects[key].GetResourceVersion())
	s.objects[key] = object
}

// Requests are the requests that came in.
func (s *apiServer) Requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	s.requests = append(s.requests, request{q, r.URL.Path, time.Now()})
	faults := s.faults
	if faults.hangAfter > 0 && len(s.requests) > faults.hangAfter {
		faults.hang = true
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if faults.warn != "" {
		w.Header().Set("Warning", fmt.Sprintf("299 - %q", faults.warn))
	}
	if faults.retryAfter != "" {
		w.Header().Set("Retry-After", faults.retryAfter)
	}
	chosen, err := selection(r.URL)
	watching := q.Get("watch") != ""
	get := !strings.HasSuffix(r.URL.Path, "/"+ingresses.Resource)
	switch {
	case faults.hang, faults.hangGet && get:
		<-r.Context().Done()
	case q.Get("sendInitialEvents") == "true" && faults.noStreamList:
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case faults.status != 0:
		fail(w, faults.status, reasons[faults.status])
	case faults.listStatus != 0 && !watching && !get:
		fail(w, faults.listStatus, reasons[faults.listStatus])
	case err != nil, faults.noNamespaceField && strings.Contains(q.Get("fieldSelector"), "metadata.namespace"):
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	case s.tooOld(q):
		fail(w, http.StatusGone, metav1.StatusReasonExpired)
	case watching:
		s.serveWatch(w, r, chosen)
	case get:
		s.serveObject(w, r.URL.Path)
	default:
		faults.sendList(w, s.list(q, chosen))
	}
}

// tooOld reports whether a list or watch names a version that is compacted. The
// real one can list at least at such a version; client-go knows others.
func (s *apiServer) tooOld(query url.Values) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	version, _ := strconv.Atoi(query.Get("resourceVersion"))
	return 0 < version && version < s.oldest
}

// selection is what namespace, labels and fields of a request choose. As for a
// real Ingress, there are two fields that a selector may name; the others are
// an error. The type is one more, as of a Secret.
func selection(u *url.URL) (func(*unstructured.Unstructured) bool, error) {
	byLabels, err := labels.Parse(u.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byFields, err := fields.ParseSelector(u.Query().Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	for _, term := range byFields.Requirements() {
		if !slices.Contains([]string{"metadata.name", "metadata.namespace", "type"}, term.Field) {
			return nil, errors.New("field label not supported: " + term.Field)
		}
	}
	_, after, inNamespace := strings.Cut(u.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(after, "/")
	return func(object *unstructured.Unstructured) bool {
		if object == nil || inNamespace && object.GetNamespace() != namespace {
			return false
		}
		class, _, _ := unstructured.NestedString(object.Object, "type")
		known := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace(), "type": class}
		return byLabels.Matches(labels.Set(object.GetLabels())) && byFields.Matches(known)
	}, nil
}

// serveObject serves what is read by name. A kind that has namespaces is not
// found at all where the path has none: the real server answers with a Status
// without details, or, for a custom resource, with this text.
func (s *apiServer) serveObject(w http.ResponseWriter, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	namespace, name := "", path[strings.LastIndex(path, "/")+1:]
	if _, after, found := strings.Cut(path, "/namespaces/"); found {
		namespace, _, _ = strings.Cut(after, "/")
	}
	object := s.objects[namespace+"/"+name]
	switch {
	case s.faults.unserved, s.clusterScoped != (namespace == ""):
		http.Error(w, "404 page not found", http.StatusNotFound)
	case object == nil:
		status := apierrors.NewNotFound(ingresses.GroupResource(), name).ErrStatus
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.WriteHeader(http.StatusNotFound)
		send(w, status)
	default:
		send(w, object.Object)
	}
}

func send(w io.Writer, value any) {
	if err := json.NewEncoder(w).Encode(value); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return // the client has gone
	}
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// list is a page of a list. The token of the next one is the number of objects before it: nothing may change between them.
func (s *apiServer) list(query url.Values, chosen func(*unstructured.Unstructured) bool) map[string]any {
	items, version := s.snapshot(chosen)
	metadata := map[string]any{"resourceVersion": strconv.Itoa(version)}
	from, _ := strconv.Atoi(query.Get("continue"))
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && from+limit < len(items) {
		metadata["continue"] = strconv.Itoa(from + limit)
		items = items[:from+limit]
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items[from:], "metadata": metadata}
}

func (s *apiServer) snapshot(chosen func(*unstructured.Unstructured) bool) ([]map[string]any, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if object := s.objects[key]; chosen(object) {
			items = append(items, object.Object)
		}
	}
	return items, s.version
}

func (s *apiServer) serveWatch(w http.ResponseWriter, r *http.Request, chosen func(*unstructured.Unstructured) bool) {
	s.mu.Lock()
	drop, faults := s.drop, s.faults
	s.mu.Unlock()
	q := r.URL.Query()
	version, _ := strconv.Atoi(q.Get("resourceVersion"))
	if faults.endWatch(w) {
		return
	} else if faults.mute {
		w.(http.Flusher).Flush()
		var ends <-chan time.Time
		if faults.muteFor > 0 {
			ends = time.After(faults.muteFor)
		}
		select {
		case <-r.Context().Done():
		case <-ends:
		}
		return
	} else if q.Get("sendInitialEvents") == "true" && faults.ignoreStreamedList {
		change{version: 1000, kind: "BOOKMARK"}.sendTo(w, chosen)
	} else if q.Get("sendInitialEvents") == "true" {
		var items []map[string]any
		items, version = s.snapshot(chosen)
		for _, item := range items {
			event(w, "ADDED", item)
		}
		if faults.endStreamedList {
			return
		}
		if faults.breakStreamedList {
			panic(http.ErrAbortHandler)
		}
		event(w, "BOOKMARK", bookmark(version))
		if faults.endsAfterStreamedList(w) {
			return
		}
	} else if version == 0 {
		items, current := s.snapshot(chosen)
		for _, item := range items {
			event(w, "ADDED", item)
		}
		version = current
	}
	if faults.onlyBookmark {
		change{version: version, kind: "BOOKMARK"}.sendTo(w, chosen)
		return
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

// stream sends what comes after the version until the connection is dropped.
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
	if c.kind == "BOOKMARK" {
		event(w, c.kind, map[string]any{"apiVersion": "v1", "kind": "Ingress", "metadata": map[string]any{"resourceVersion": strconv.Itoa(c.version)}})
		return
	}
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
