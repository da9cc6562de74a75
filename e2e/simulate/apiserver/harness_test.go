package apiserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// server starts a Server with the namespace shop.
func server(t testing.TB, options ...func(*apiserver.Options)) *apiserver.Server {
	t.Helper()
	var o apiserver.Options
	for _, option := range options {
		option(&o)
	}
	s, err := apiserver.New(o)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	_, err = s.Store(world.Key{Resource: world.Namespaces, Name: "shop"}, world.Object{})
	require.NoError(t, err)
	return s
}

// answer is what a request got.
type answer struct {
	t      testing.TB
	Code   int
	Header http.Header
	Body   string
}

// call is one request.
type call struct {
	method, path, body, contentType, accept, agent string
}

func send(t testing.TB, s http.Handler, c call) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
	if c.contentType != "" {
		r.Header.Set("Content-Type", c.contentType)
	}
	if c.accept != "" {
		r.Header.Set("Accept", c.accept)
	}
	if c.agent != "" {
		r.Header.Set("User-Agent", c.agent)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return answer{t: t, Code: w.Code, Header: w.Header(), Body: w.Body.String()}
}

func get(t testing.TB, s http.Handler, path string) answer {
	t.Helper()
	return send(t, s, call{method: http.MethodGet, path: path})
}

func post(t testing.TB, s http.Handler, path, body string) answer {
	t.Helper()
	return send(t, s, call{method: http.MethodPost, path: path, body: body})
}

func put(t testing.TB, s http.Handler, path, body string) answer {
	t.Helper()
	return send(t, s, call{method: http.MethodPut, path: path, body: body})
}

func merge(t testing.TB, s http.Handler, path, body string) answer {
	t.Helper()
	return send(t, s, call{method: http.MethodPatch, path: path, body: body, contentType: "application/merge-patch+json"})
}

func remove(t testing.TB, s http.Handler, path string) answer {
	t.Helper()
	return send(t, s, call{method: http.MethodDelete, path: path})
}

// object decodes an object.
func (a answer) object() *unstructured.Unstructured {
	a.t.Helper()
	require.Less(a.t, a.Code, 300, a.Body)
	u := &unstructured.Unstructured{}
	require.NoError(a.t, kjson.UnmarshalCaseSensitivePreserveInts([]byte(a.Body), &u.Object), a.Body)
	return u
}

// failure decodes a Status.
func (a answer) failure() *metav1.Status {
	a.t.Helper()
	status := &metav1.Status{}
	require.NoError(a.t, json.Unmarshal([]byte(a.Body), status), a.Body)
	require.Equal(a.t, "Status", status.Kind, a.Body)
	require.Equal(a.t, a.Code, int(status.Code))
	return status
}

// The paths of the objects that most tests use.
const (
	configMaps  = "/api/v1/namespaces/shop/configmaps"
	deployments = "/apis/apps/v1/namespaces/shop/deployments"
	cart        = deployments + "/cart"
)

// cartBody is a Deployment as a user writes it.
const cartBody = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cart","labels":{"team":"x"},"annotations":{"note":"1"}},
"spec":{"selector":{"matchLabels":{"app":"cart"}},"template":{"metadata":{"labels":{"app":"cart"}},
"spec":{"containers":[{"name":"c","image":"cart:1","env":[{"name":"A","value":"1"}]}],"volumes":[{"name":"v","configMap":{"name":"app"}}]}}}}`

// field returns the value at a path of an object.
func field(u *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return value
}

// worldKey names an object in the namespace shop.
func worldKey(plural, name string) world.Key {
	for _, r := range world.Resources() {
		if r.Plural == plural && r.Group != "events.k8s.io" {
			return world.Key{Resource: r, Namespace: "shop", Name: name}
		}
	}
	return world.Key{}
}

// sleep lets fake time go by.
func sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the time is fake
}

// body is a request body of unknown length.
func body(text string) io.Reader { return strings.NewReader(text) }
