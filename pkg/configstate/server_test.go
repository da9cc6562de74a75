package configstate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// server speaks the part of the Kubernetes API that a Store needs, encoding with the API's own serializers. What it does
// is deterministic: a request can be held, refused and counted.
type server struct {
	t      *testing.T
	scheme *runtime.Scheme
	http   *httptest.Server

	mu       sync.Mutex
	version  int
	objects  map[string]client // by path
	watches  map[*watching]bool
	history  []happened
	requests []string
	// past has what was stored, and nil for what was deleted, by path and version.
	past    map[string]map[int]client
	refused int            // how many requests were refused
	refuse  map[string]int // path prefix, or a whole path and "$" → HTTP status
	// hold, if not nil, is called before a GET of a single object is answered.
	hold func(*http.Request)
	// behind makes it an API server whose cache does not come up to any resourceVersion.
	behind bool
	// more, if not empty, says with each list that it is not complete.
	more        string
	podStatuses podStatuses
	// noStreams makes it an API server without streaming lists.
	noStreams bool
}

// client is an object as the server keeps it.
type client interface {
	runtime.Object
	metav1.Object
}

type watching struct {
	resource, namespace string
	events              chan []byte
	closed              chan struct{}
}

// matches reports whether a watch is of these objects.
func (w *watching) matches(resource, namespace string) bool {
	return w.resource == resource && (w.namespace == "" || w.namespace == namespace)
}

// happened is an event that was sent, for watches that begin before it.
type happened struct {
	version             int
	resource, namespace string
	event               []byte
}

const annotationNoise = "kubectl.kubernetes.io/last-applied-configuration"

func newServer(t *testing.T) *server {
	t.Helper()
	s := newUnstartedServer(t)
	s.http.Start()
	t.Cleanup(s.stop)
	return s
}

func newUnstartedServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		t: t, scheme: runtime.NewScheme(), version: 100,
		objects: map[string]client{}, watches: map[*watching]bool{}, refuse: map[string]int{},
		past: map[string]map[int]client{},
	}
	require.NoError(t, corev1.AddToScheme(s.scheme))
	require.NoError(t, metav1.AddMetaToScheme(s.scheme))
	s.http = httptest.NewUnstartedServer(s)
	return s
}

func (s *server) stop() {
	s.breakWatches()
	s.http.CloseClientConnections()
	s.http.Close()
}

func (s *server) config() *rest.Config {
	return &rest.Config{Host: s.http.URL}
}

func resourceOf(object client) string {
	if _, ok := object.(*corev1.Secret); ok {
		return "secrets"
	}
	return "configmaps"
}

func path(object client) string {
	return "/api/v1/namespaces/" + object.GetNamespace() + "/" + resourceOf(object) + "/" + object.GetName()
}

// put stores an object under a new resourceVersion, with a new UID if it is new, and returns what is stored.
func (s *server) put(object client) client {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	kind := "MODIFIED"
	old, ok := s.objects[path(object)]
	switch {
	case !ok:
		kind = "ADDED"
		fallthrough
	case object.GetUID() == "":
		if ok {
			object.SetUID(old.GetUID())
		} else {
			object.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version)))
		}
	}
	s.objects[path(object)] = object
	s.keepLocked(path(object), object)
	s.sendLocked(kind, object)
	return object
}

// forget deletes an object without an event to the watches, as if they were broken at that time.
func (s *server) forget(object client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	delete(s.objects, path(object))
	s.keepLocked(path(object), nil)
}

func (s *server) keepLocked(path string, object client) {
	if s.past[path] == nil {
		s.past[path] = map[int]client{}
	}
	s.past[path][s.version] = object
}

// exactly returns an object as it was at a version; nil if there was none.
func (s *server) exactly(path string, version int) client {
	var object client
	last := 0
	for at, stored := range s.past[path] {
		if at <= version && at > last {
			object, last = stored, at
		}
	}
	return object
}

func (s *server) remove(object client) {
	s.forget(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	object.SetResourceVersion(strconv.Itoa(s.version))
	s.sendLocked("DELETED", object)
}

func (s *server) sendLocked(kind string, object client) {
	event := happened{s.version, resourceOf(object), object.GetNamespace(), s.event(kind, s.partial(object))}
	s.history = append(s.history, event)
	for w := range s.watches {
		if w.matches(event.resource, event.namespace) {
			w.events <- event.event
		}
	}
}

// breakWatches ends all watches, as a restart of the server does.
func (s *server) breakWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		close(w.closed)
		delete(s.watches, w)
	}
}

func (s *server) refusing(prefix string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status == 0 {
		delete(s.refuse, prefix)
		return
	}
	s.refuse[prefix] = status
}

// refusals returns how many requests were refused.
func (s *server) refusals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *server) holding(hold func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = hold
}

// seen returns, sorted, and forgets the reads: of single objects, "meta /api/…" and "get /api/…", and "list /api/…".
func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	slices.Sort(requests)
	return requests
}
