package act

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// recorder stores what it is sent, as far as the tests of this package need it, and keeps the requests. It says nothing
// about the semantics of the API server: those are tested against the model and a real one.
type recorder struct {
	t *testing.T
	// mu is for operations that go on while the test reads an object.
	mu       sync.Mutex
	objects  map[string]world.Object
	requests []Request
	version  int
	// reject, if set, may answer a request instead.
	reject func(Request) *Response
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	f := &recorder{t: t, objects: map[string]world.Object{}}
	require.NoError(t, Setup(t.Context(), f))
	f.requests = nil
	return f
}

func (f *recorder) Do(_ context.Context, r Request) (Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
	if f.reject != nil {
		if answer := f.reject(r); answer != nil {
			return *answer, nil
		}
	}
	parsed, err := url.Parse(r.Path)
	require.NoError(f.t, err)
	path := parsed.Path
	old, there := f.objects[path]
	switch r.Method {
	case http.MethodGet:
		if selector := parsed.Query().Get("labelSelector"); selector != "" {
			return f.list(path, selector), nil
		}
	case http.MethodPost:
		object := f.decode(r.Body)
		path += "/" + world.Section(object, "metadata")["name"].(string)
		if _, there := f.objects[path]; there {
			return rejection(409, "AlreadyExists"), nil
		}
		world.Section(object, "metadata")["uid"] = fmt.Sprintf("uid-%d", f.version)
		return f.store(path, object), nil
	}
	if !there && r.ContentType != applyPatch {
		return rejection(404, "NotFound"), nil
	}
	switch r.Method {
	case http.MethodPut:
		object := f.decode(r.Body)
		sent, live := world.Section(object, "metadata"), world.Section(old, "metadata")
		if sent["resourceVersion"] != nil && sent["resourceVersion"] != live["resourceVersion"] {
			return rejection(409, "Conflict"), nil
		}
		sent["uid"] = live["uid"]
		return f.store(path, object), nil
	case http.MethodPatch:
		return f.store(path, f.patched(path, old, r)), nil
	case http.MethodDelete:
		delete(f.objects, path)
	}
	return Response{Status: 200, Body: f.encode(old)}, nil
}

func rejection(status int, reason string) Response {
	return Response{Status: status, Body: []byte(`{"kind":"Status","reason":"` + reason + `","message":"no"}`)}
}

func (f *recorder) store(path string, object world.Object) Response {
	f.version++
	meta := world.Section(object, "metadata")
	meta["resourceVersion"] = strconv.Itoa(f.version)
	f.objects[path] = object
	return Response{Status: 200, Body: f.encode(object)}
}

func (f *recorder) list(path, selector string) Response {
	parsed, err := labels.Parse(selector)
	require.NoError(f.t, err)
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		set := labels.Set{}
		for name, value := range world.Section(f.objects[key], "metadata", "labels") {
			set[name], _ = value.(string)
		}
		if strings.HasPrefix(key, path+"/") && parsed.Matches(set) {
			items = append(items, f.objects[key])
		}
	}
	return Response{Status: 200, Body: f.encode(world.Object{"kind": "List", "items": items})}
}

func (f *recorder) patched(path string, old world.Object, r Request) world.Object {
	before := f.encode(old)
	var after []byte
	var err error
	switch r.ContentType {
	case mergePatch:
		after, err = jsonpatch.MergePatch(before, r.Body)
	case strategicPatch:
		after, err = strategicpatch.StrategicMergePatch(before, r.Body, typed(resourceOf(path)))
	case jsonPatch:
		var patch jsonpatch.Patch
		patch, err = jsonpatch.DecodePatch(r.Body)
		require.NoError(f.t, err)
		after, err = patch.Apply(before)
	case applyPatch:
		after, err = jsonpatch.MergePatch([]byte("{}"), r.Body)
	default:
		require.Fail(f.t, "unknown content type", r.ContentType)
	}
	require.NoError(f.t, err, string(r.Body))
	return f.decode(after)
}

func resourceOf(path string) world.Resource {
	plural := strings.Split(path, "/")
	for _, r := range world.Resources() {
		if r.Plural == plural[len(plural)-2] {
			return r
		}
	}
	return world.Resource{}
}

func (f *recorder) decode(text []byte) world.Object {
	object := world.Object{}
	require.NoError(f.t, json.Unmarshal(text, &object), string(text))
	return object
}

func (f *recorder) encode(object world.Object) []byte {
	text, err := json.Marshal(object)
	require.NoError(f.t, err)
	return text
}

// get returns what is stored.
func (f *recorder) get(on string) world.Object {
	key, err := parseKey(on, world.Resources())
	require.NoError(f.t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[objectPath(key)]
}

// put stores an object as it is.
func (f *recorder) put(on string, object world.Object) {
	key, err := parseKey(on, world.Resources())
	require.NoError(f.t, err)
	meta, _ := object["metadata"].(world.Object)
	object["metadata"] = with(meta, "name", key.Name)
	f.objects[objectPath(key)] = object
}

func (f *recorder) do(do, on string, with ...string) error {
	s := history.Step{Do: do, On: on, With: map[string]string{}}
	for i := 0; i < len(with); i += 2 {
		s.With[with[i]] = with[i+1]
	}
	return Do(f.t.Context(), f, s)
}

// secretValue decodes a value of a stored Secret.
func (f *recorder) secretValue(on, key string) string {
	encoded, _ := world.Section(f.get(on), "data")[key].(string)
	text, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(f.t, err)
	return string(text)
}

// methods returns the methods of the recorded requests.
func (f *recorder) methods() []string {
	var methods []string
	for _, r := range f.requests {
		methods = append(methods, r.Method)
	}
	return methods
}
