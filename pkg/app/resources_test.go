package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// rollouts is an API server that serves a custom kind as a resource of some name, without aggregated discovery.
func rollouts(t *testing.T, name *atomic.Value) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const group = `{"name":"argoproj.io","versions":[{"groupVersion":"argoproj.io/v1alpha1","version":"v1alpha1"}],` +
			`"preferredVersion":{"groupVersion":"argoproj.io/v1alpha1","version":"v1alpha1"}}`
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":[]}`)
		case "/apis":
			fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[%s]}`, group)
		case "/apis/argoproj.io/v1alpha1":
			fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"argoproj.io/v1alpha1",`+
				`"resources":[{"name":%q,"namespaced":true,"kind":"Rollout","verbs":["patch"]}]}`, name.Load())
		case fmt.Sprintf("/apis/argoproj.io/v1alpha1/namespaces/shop/%s/web", name.Load()):
			fmt.Fprint(w, `{"kind":"Rollout","apiVersion":"argoproj.io/v1alpha1","metadata":{"namespace":"shop","name":"web","labels":{"served":"yes"}}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestRequestsGoToTheResourceThatAKindHasAfterAReset(t *testing.T) {
	t.Parallel()
	kind := workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}}
	name := &atomic.Value{}
	name.Store("rollouts")
	server := rollouts(t, name)
	scheme, err := newScheme()
	require.NoError(t, err)
	api := &resources{config: &rest.Config{Host: server.URL, QPS: -1}, http: server.Client(), scheme: scheme, log: logr.Discard()}
	mapper, err := apiutil.NewDynamicRESTMapper(api.config, api.http)
	require.NoError(t, err)
	require.NoError(t, api.renew(mapper))

	requests := map[string]func(context.Context, *unstructured.Unstructured) error{
		"get": func(ctx context.Context, o *unstructured.Unstructured) error {
			return api.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, o)
		},
		"patch": func(ctx context.Context, o *unstructured.Unstructured) error {
			return api.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
	}
	answered := func(verb string) error {
		o := kind.NewObject()
		o.SetNamespace("shop")
		o.SetName("web")
		err := requests[verb](t.Context(), o)
		assert.Equal(t, err == nil, o.GetLabels()["served"] == "yes")
		return err
	}
	for verb := range requests {
		require.NoError(t, answered(verb))
	}
	name.Store("releases")
	for verb := range requests {
		require.Error(t, answered(verb), "%s: the client keeps the resource", verb)
	}
	api.Reset()
	for verb := range requests {
		require.NoError(t, answered(verb), verb)
	}
	mapping, err := api.RESTMapping(kind.GroupKind(), kind.Version)
	require.NoError(t, err)
	assert.Equal(t, "releases", mapping.Resource.Resource)
	_, err = api.RESTMapping(schema.GroupKind{Group: "argoproj.io", Kind: "Other"}, "v1alpha1")
	assert.True(t, meta.IsNoMatchError(err), "%v", err)
}
