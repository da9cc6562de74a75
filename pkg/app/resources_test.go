package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
	"github.com/pod-reloader/pod-reloader/pkg/workloadstate"
)

// definition is an API server that serves a custom kind as a resource of some name, or not at all (""), and another kind of its group,
// without aggregated discovery.
type definition struct {
	mu   sync.Mutex
	name string
	// changed is closed at the next change, which ends all watches.
	changed chan struct{}
	// lookups counts the requests for the group since the last change.
	lookups int
}

func (d *definition) set(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.changed)
	d.name, d.changed, d.lookups = name, make(chan struct{}), 0
}

func (d *definition) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lookups
}

func (d *definition) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const version = "/apis/argoproj.io/v1alpha1"
	resources := `{"name":"others","namespaced":true,"kind":"Other","verbs":["get"]}`
	if d.name != "" {
		resources += fmt.Sprintf(`,{"name":%q,"namespaced":true,"kind":"Rollout","verbs":["patch"]}`, d.name)
	}
	answers := map[string]string{
		"/api": `{"kind":"APIVersions","versions":[]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"argoproj.io","versions":[{"groupVersion":"argoproj.io/v1alpha1",` +
			`"version":"v1alpha1"}],"preferredVersion":{"groupVersion":"argoproj.io/v1alpha1","version":"v1alpha1"}}]}`,
		version: fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"argoproj.io/v1alpha1","resources":[%s]}`, resources),
		version + "/namespaces/shop/" + d.name + "/web": `{"kind":"Rollout","apiVersion":"argoproj.io/v1alpha1",` +
			`"metadata":{"namespace":"shop","name":"web","labels":{"served":"yes"}}}`,
		version + "/" + d.name: `{"type":"BOOKMARK","object":{"kind":"Rollout","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n",
	}
	if r.URL.Path == version {
		d.lookups++
	}
	body, ok := answers[r.URL.Path]
	if !ok {
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("404 page not found")), Request: r}, nil
	}
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	answer.Body = io.NopCloser(strings.NewReader(body))
	if r.URL.Query().Has("watch") {
		answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), stays{r.Context().Done(), d.changed}))
	}
	return answer, nil
}

// stays is the end of a watch.
type stays struct{ done, changed <-chan struct{} }

func (s stays) Read([]byte) (int, error) {
	select {
	case <-s.done:
	case <-s.changed:
	}
	return 0, io.EOF
}

// watched are resources of which a kind is read, and then followed by its watch.
func watched(t *testing.T, d *definition) (api *resources, get, patch func() error) {
	t.Helper()
	kind := workload.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, Template: []string{"spec", "template"},
	}
	scheme, err := newScheme()
	require.NoError(t, err)
	api = &resources{config: &rest.Config{Host: "http://server", QPS: -1}, http: &http.Client{Transport: d}, scheme: scheme}
	mapper, err := apiutil.NewDynamicRESTMapper(api.config, api.http)
	require.NoError(t, err)
	require.NoError(t, api.renew(nil, mapper))
	object := func() *unstructured.Unstructured {
		o := kind.NewObject()
		o.SetNamespace("shop")
		o.SetName("web")
		return o
	}
	get = func() error { return api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, object()) }
	patch = func() error {
		return api.Patch(t.Context(), object(), client.RawPatch(types.MergePatchType, []byte(`{}`)))
	}
	require.NoError(t, get())
	require.NoError(t, patch())
	source := workloadstate.New(workloadstate.Options{Config: api.config, HTTPClient: api.http, Mapper: api, Log: logr.Discard()})
	go source.Watch(kind, func(_, _ workload.Summary, _ string) {}).Run(t.Context())
	<-time.After(time.Minute)
	return api, get, patch
}

func TestRequestsGoToTheResourceThatAKindHasNow(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"what is followed is gone": false, "the RESTMapper knows it already": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &definition{name: "rollouts", changed: make(chan struct{})}
				api, get, patch := watched(t, d)
				d.set("releases")
				require.Error(t, patch(), "the client keeps the resource")
				if known {
					_, err := api.RESTMapping(schema.GroupKind{Group: "argoproj.io", Kind: "Unknown"}, "v1alpha1")
					require.True(t, meta.IsNoMatchError(err), "%v", err)
				}
				<-time.After(time.Minute)
				require.NoError(t, get())
				require.NoError(t, patch())
				mapping, err := api.RESTMapping(schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}, "v1alpha1")
				require.NoError(t, err)
				assert.Equal(t, "releases", mapping.Resource.Resource)
			})
		})
	}
}

// Otherwise each request would look up its resource, and those of all other kinds would wait for that.
func TestKindThatIsNotServedAnyMoreKeepsItsResource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &definition{name: "rollouts", changed: make(chan struct{})}
		api, get, patch := watched(t, d)
		before := api.current.Load()
		d.set("")
		<-time.After(time.Hour)
		lookups := d.asked()
		assert.Positive(t, lookups)
		for _, err := range []error{get(), patch()} {
			assert.True(t, apierrors.IsNotFound(err), "%v", err)
		}
		assert.Equal(t, lookups, d.asked(), "requests look up nothing")
		assert.Same(t, before, api.current.Load(), "all other kinds are as they were")
	})
}

func TestOlderAnswersDoNotReplaceNewerOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, _, _ := watched(t, &definition{name: "rollouts", changed: make(chan struct{})})
		_, older, err := api.Fresh()
		require.NoError(t, err)
		_, newer, err := api.Fresh()
		require.NoError(t, err)
		require.NoError(t, newer())
		used := api.current.Load()
		require.Error(t, older())
		assert.Same(t, used, api.current.Load())
	})
}

// mute is an API server that accepts requests and does not answer.
type mute struct{}

func (mute) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A lookup that hangs would keep its kind unwatched for ever.
func TestFreshLookupEndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &resources{config: &rest.Config{Host: "http://server", QPS: -1}, http: &http.Client{Transport: mute{}}}
		began := time.Now()
		fresh, _, err := api.Fresh()
		if err == nil {
			_, err = fresh.RESTMapping(schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}, "v1alpha1")
		}
		require.ErrorContains(t, err, "deadline exceeded")
		assert.False(t, meta.IsNoMatchError(err), "it is not known whether the kind is installed")
		assert.LessOrEqual(t, time.Since(began), 3*discoveryLimit)
	})
}
