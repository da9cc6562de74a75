package workloadstate

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// server answers lists and watches of Deployments with what a test has prepared.
type server struct {
	t    *testing.T
	http *httptest.Server

	mu sync.Mutex
	// lists and watches are the bodies of the next answers, by namespace ("" is all). A watch stays open after its body, until
	// the next event is sent; a body that begins with a status code is a refusal.
	lists, watches map[string][]string
	asked          []string
	events         map[string]chan string
	closing        chan struct{}
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		t: t, lists: map[string][]string{}, watches: map[string][]string{},
		events:  map[string]chan string{"": make(chan string), "shop": make(chan string), "bank": make(chan string)},
		closing: make(chan struct{}),
	}
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.closing)
		s.http.Close()
	})
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace := ""
	if parts := strings.Split(r.URL.Path, "/"); len(parts) == 7 {
		namespace = parts[5]
	}
	watching := r.URL.Query().Get("watch") == "true"
	body, ok := s.next(namespace, watching, r)
	if !ok || strings.HasPrefix(body, "4") {
		var code int
		_, _ = fmt.Sscan(body, &code)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(max(code, http.StatusForbidden))
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason(code), max(code, 403))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, body)
	if !watching {
		return
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case event, open := <-s.events[namespace]:
			if !open || event == "" {
				return
			}
			fmt.Fprint(w, event)
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

func reason(code int) string {
	if code == http.StatusUnprocessableEntity {
		return "Invalid"
	}
	return "Forbidden"
}

// next takes the next body; false when none is prepared.
func (s *server) next(namespace string, watching bool, r *http.Request) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb, bodies := "list", s.lists
	if watching {
		verb, bodies = "watch", s.watches
	}
	limit := ""
	if r.URL.Query().Has("limit") {
		limit = " in pages"
	}
	s.asked = append(s.asked, verb+" "+r.URL.Path+" "+r.URL.Query().Get("resourceVersion")+limit)
	if len(bodies[namespace]) == 0 {
		return "", false
	}
	body := bodies[namespace][0]
	bodies[namespace] = bodies[namespace][1:]
	return body, true
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// deployment is the JSON of one.
func deployment(namespace, name string, version int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":%q,"name":%q,"uid":"uid-%s","resourceVersion":"%d",`+
		`"annotations":{"keep":"%d","drop":"x"}},"spec":{"template":{"spec":{"containers":[]}}}}`, namespace, name, name, version, version)
}

func event(kind, object string) string {
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, object)
}

func listOf(version int, objects ...string) string {
	return fmt.Sprintf(`{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, strings.Join(objects, ","))
}

// initialEnd is the bookmark behind the initial events of a streaming list.
func initialEnd(version int) string {
	return event("BOOKMARK", fmt.Sprintf(`{"kind":"Deployment","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`, version))
}

// fixed knows the same at all times.
type fixed struct{ meta.RESTMapper }

func (f fixed) Fresh() (Finder, func() error, error) { return f, func() error { return nil }, nil }

func mapper() Mapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
	m.Add(workload.Deployment().GroupVersionKind, meta.RESTScopeNamespace)
	return fixed{m}
}

func (s *server) source(log logr.Logger, namespaces ...string) *Source {
	keep := func(key string) bool { return key == "keep" }
	return New(Options{
		Config: &rest.Config{Host: s.http.URL, QPS: -1}, HTTPClient: s.http.Client(), Mapper: mapper(), Namespaces: namespaces,
		Keep: workload.Keep{Label: keep, Annotation: keep}, Log: log,
	})
}

// send sends the next event of a watch, once that has read all before it.
func (s *server) send(namespace, event string) {
	s.t.Helper()
	select {
	case s.events[namespace] <- event:
	case <-s.t.Context().Done():
		require.Fail(s.t, "there is no watch")
	}
}
