package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func names(t *testing.T, a answer) []string {
	t.Helper()
	require.Equal(t, 200, a.Code, a.Body)
	list := &unstructured.UnstructuredList{}
	require.NoError(t, json.Unmarshal([]byte(a.Body), list), a.Body)
	out := []string{}
	for _, u := range list.Items {
		out = append(out, u.GetNamespace()+"/"+u.GetName())
	}
	return out
}

func TestListSelectsAndSorts(t *testing.T) {
	t.Parallel()
	s := server(t)
	_, err := s.Store(world.Key{Resource: world.Namespaces, Name: "a"}, world.Object{})
	require.NoError(t, err)
	for _, name := range []string{"b", "c", "a"} {
		set(t, s, name, name)
	}
	post(t, s, "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"z"}}`).object()
	for path, want := range map[string][]string{
		configMaps:                                                {"shop/a", "shop/b", "shop/c"},
		"/api/v1/configmaps":                                      {"a/z", "shop/a", "shop/b", "shop/c"},
		configMaps + "?labelSelector=l+in+(a,c)":                  {"shop/a", "shop/c"},
		configMaps + "?fieldSelector=metadata.name%3Db":           {"shop/b"},
		"/api/v1/configmaps?fieldSelector=metadata.namespace%3Da": {"a/z"},
		"/api/v1/namespaces/none/configmaps":                      {},
		"/api/v1/namespaces":                                      {"/a", "/shop"},
	} {
		assert.Equal(t, want, names(t, get(t, s, path)), path)
	}
	assert.Equal(t, 400, get(t, s, configMaps+"?fieldSelector=data%3Db").Code)
	assert.Equal(t, 400, get(t, s, configMaps+"?labelSelector=a+b").Code)
}

func TestReadsAtVersions(t *testing.T) {
	t.Parallel()
	s := server(t)
	first := world.Meta(set(t, s, "a", "1")).GetResourceVersion()
	set(t, s, "a", "2")
	last := s.Version()
	for query, code := range map[string]int{
		"?resourceVersion=0": 200, "?resourceVersion=" + fmt.Sprint(last): 200, "?resourceVersion=" + fmt.Sprint(last+1): 504, "?resourceVersion=x": 400,
	} {
		assert.Equal(t, code, get(t, s, configMaps+query).Code, query)
		assert.Equal(t, code, get(t, s, configMaps+"/a"+query).Code, query)
	}
	status := get(t, s, configMaps+"?resourceVersion="+fmt.Sprint(last+1)).failure()
	assert.Equal(t, metav1.StatusReasonTimeout, status.Reason)
	assert.Equal(t, metav1.CauseTypeResourceVersionTooLarge, status.Details.Causes[0].Type)
	exact := configMaps + "?resourceVersionMatch=Exact&resourceVersion=" + first
	var list corev1.ConfigMapList
	require.NoError(t, json.Unmarshal([]byte(get(t, s, exact).Body), &list))
	assert.Equal(t, "1", list.Items[0].Labels["l"])
	assert.Equal(t, first, list.ResourceVersion)
	s.Compact(last)
	assert.Equal(t, 410, get(t, s, exact).Code)
}

func TestAServerThatLags(t *testing.T) {
	t.Parallel()
	lag := func(o *apiserver.Options) { o.Gate = gate(apiserver.Fate{Lag: 1}) }
	s := server(t, lag)
	set(t, s, "a", "1")
	second := world.Meta(set(t, s, "a", "2")).GetResourceVersion()
	label := func(query string) string { return get(t, s, configMaps+"/a"+query).object().GetLabels()["l"] }
	assert.Equal(t, "2", label(""), "a consistent read")
	assert.Equal(t, "1", label("?resourceVersion=0"))
	assert.Equal(t, 1, s.Behind())
	assert.Equal(t, "2", label("?resourceVersion="+second), "not older than asked for")
	assert.Equal(t, 1, s.Behind())
	u := merge(t, s, configMaps+"/a", `{"data":{"a":"b"}}`).object()
	assert.Equal(t, "2", u.GetLabels()["l"], "a write that began with the old object is repeated")
}

func TestNegotiation(t *testing.T) {
	t.Parallel()
	s := server(t)
	set(t, s, "a", "1")
	const protobuf = "application/vnd.kubernetes.protobuf"
	const partial = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	for name, tc := range map[string]struct {
		accept, path, contentType, kind string
		code                            int
	}{
		"nothing":           {"", "/a", "application/json", "ConfigMap", 200},
		"anything":          {"*/*", "/a", "application/json", "ConfigMap", 200},
		"first":             {protobuf + ",application/json", "/a", protobuf, "ConfigMap", 200},
		"first that can be": {"application/json;as=Table;v=v1;g=meta.k8s.io, application/json", "/a", "application/json", "ConfigMap", 200},
		"metadata":          {"application/json" + partial, "/a", "application/json", "PartialObjectMetadata", 200},
		"metadata protobuf": {protobuf + partial, "/a", protobuf, "PartialObjectMetadata", 200},
		"list protobuf":     {protobuf, "", protobuf, "ConfigMapList", 200},
		"list of metadata":  {protobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "", protobuf, "PartialObjectMetadataList", 200},
		"error protobuf":    {protobuf, "/none", protobuf, "Status", 404},
		"error":             {"application/json" + partial, "/none", "application/json", "Status", 404},
		"impossible":        {"text/html", "/a", "application/json", "Status", 406},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := send(t, s, call{method: http.MethodGet, path: configMaps + tc.path, accept: tc.accept})
			assert.Equal(t, tc.code, a.Code)
			assert.Equal(t, tc.contentType, a.Header.Get("Content-Type"))
			o, gvk, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(a.Body), nil, partialOf(tc.kind))
			require.NoError(t, err)
			assert.Equal(t, tc.kind, gvk.Kind)
			if m, ok := o.(metav1.Object); ok {
				assert.Equal(t, "a", m.GetName())
				assert.Equal(t, "1", m.GetLabels()["l"])
			}
			if list, ok := o.(*corev1.ConfigMapList); ok {
				assert.Len(t, list.Items, 1)
			}
		})
	}
}

// partialOf returns what to decode into where the scheme of the clients does not know the kind.
func partialOf(kind string) runtime.Object {
	switch kind {
	case "PartialObjectMetadata":
		return &metav1.PartialObjectMetadata{}
	case "PartialObjectMetadataList":
		return &metav1.PartialObjectMetadataList{}
	}
	return nil
}

func TestBodiesOfAllForms(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "p"}, Data: map[string]string{"a": "b"}}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), "application/vnd.kubernetes.protobuf")
	data, err := runtime.Encode(info.Serializer, o)
	require.NoError(t, err)
	for contentType, body := range map[string]string{
		"application/vnd.kubernetes.protobuf": string(data),
		"application/yaml":                    "metadata: {name: yaml}\ndata: {a: b}\n",
		"application/json; charset=utf-8":     `{"metadata":{"name":"j"},"data":{"a":"b"}}`,
	} {
		u := send(t, s, call{method: http.MethodPost, path: configMaps, body: body, contentType: contentType}).object()
		assert.Equal(t, map[string]any{"a": "b"}, field(u, "data"), contentType)
	}
	assert.Equal(t, 415, send(t, s, call{method: http.MethodPost, path: configMaps, body: "x", contentType: "text/plain"}).Code)
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := server(t)
	for path, want := range map[string]string{
		"/api": `"versions":["v1"]`, "/apis": `"name":"apps"`, "/api/v1": `"name":"configmaps"`, "/apis/apps": `"groupVersion":"apps/v1"`,
		"/apis/apps/v1": `"name":"deployments/status"`, "/version": `"gitVersion":"v1.36.3"`, "/readyz": "ok",
		"/apis/authorization.k8s.io/v1": `"selfsubjectaccessreviews"`,
	} {
		a := get(t, s, path)
		assert.Equal(t, 200, a.Code, path)
		assert.Contains(t, a.Body, want, path)
	}
	assert.Equal(t, 404, get(t, s, "/apis/none").Code)
	assert.Equal(t, metav1.StatusReasonNotFound, get(t, s, "/apis/apps/v1/none").failure().Reason)
	assert.Equal(t, "404 page not found\n", get(t, s, "/openapi/v2").Body)
}

func TestAccess(t *testing.T) {
	t.Parallel()
	s := server(t, func(o *apiserver.Options) {
		o.Authorize = func(c *world.Call) *metav1.Status {
			if c.Key.Resource == world.Secrets && c.Client == "tenant" {
				return &metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "no"}
			}
			return nil
		}
		o.Client = func(r *http.Request) string { return r.UserAgent() }
	})
	a := send(t, s, call{method: http.MethodGet, path: "/api/v1/secrets", agent: "tenant"})
	assert.Equal(t, 403, a.Code)
	assert.Equal(t, metav1.StatusReasonForbidden, a.failure().Reason)
	assert.Equal(t, 200, send(t, s, call{method: http.MethodGet, path: "/api/v1/secrets", agent: "admin"}).Code)
	review := call{
		method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		body: `{"spec":{"resourceAttributes":{"verb":"get","resource":"secrets","version":"v1"}}}`,
	}
	for client, allowed := range map[string]bool{"tenant": false, "admin": true} {
		review.agent = client
		assert.Equal(t, allowed, field(send(t, s, review).object(), "status", "allowed"), client)
	}
}
