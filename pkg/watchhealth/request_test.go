package watchhealth

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRequestsAreRecognized(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, url string
		want        request
		not         bool
	}{
		"list of all namespaces":       {url: "/api/v1/secrets", want: request{about: Watch{"secrets", ""}}},
		"list of one namespace":        {url: "/api/v1/namespaces/shop/secrets", want: request{about: Watch{"secrets", "shop"}}},
		"list of a group":              {url: "/apis/apps/v1/deployments", want: request{about: Watch{"deployments.apps", ""}}},
		"in one namespace":             {url: "/apis/apps/v1/namespaces/shop/deployments", want: request{about: Watch{"deployments.apps", "shop"}}},
		"namespaces":                   {url: "/api/v1/namespaces", want: request{about: Watch{"namespaces", ""}}},
		"behind a path":                {url: "/k8s/clusters/c-1/api/v1/secrets?watch=1", want: request{about: Watch{"secrets", ""}, watch: true}},
		"watch":                        {url: "/api/v1/secrets?watch=true", want: request{about: Watch{"secrets", ""}, watch: true}},
		"streaming list":               {url: "/api/v1/secrets?watch=true&sendInitialEvents=true", want: request{about: Watch{"secrets", ""}, watch: true, streaming: true}},
		"list of a reflector":          {url: "/api/v1/secrets?resourceVersion=0", want: request{about: Watch{"secrets", ""}, fromCache: true}},
		"watch from a version":         {url: "/api/v1/secrets?watch=true&resourceVersion=7", want: request{about: Watch{"secrets", ""}, watch: true, fromCache: true, versioned: true}},
		"watch from any version":       {url: "/api/v1/secrets?watch=true&resourceVersion=", want: request{about: Watch{"secrets", ""}, watch: true, fromCache: true}},
		"page of a list":               {url: "/api/v1/secrets?continue=x", want: request{about: Watch{"secrets", ""}, page: true, versioned: true}},
		"one object":                   {url: "/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name%3Ddb", want: request{about: Watch{"secrets/db", "shop"}}},
		"another field":                {url: "/api/v1/secrets?fieldSelector=type%3DOpaque", want: request{about: Watch{"secrets", ""}}},
		"before a watch goes on":       {url: "/api/v1/secrets?limit=1", want: request{about: Watch{"secrets", ""}, first: true}},
		"page of one object":           {url: "/api/v1/secrets?limit=1&continue=x", want: request{about: Watch{"secrets", ""}, page: true, versioned: true}},
		"get":                          {url: "/api/v1/namespaces/shop/secrets/db", not: true},
		"get of a namespace":           {url: "/api/v1/namespaces/shop", not: true},
		"get of a cluster-wide object": {url: "/apis/apps/v1/deployments/a", not: true},
		"create":                       {method: http.MethodPost, url: "/api/v1/namespaces/shop/secrets", not: true},
		"discovery of a group":         {url: "/apis/apps/v1", not: true},
		"discovery":                    {url: "/api/v1", not: true},
		"version":                      {url: "/version", not: true},
		"root":                         {url: "/", not: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := http.NewRequestWithContext(t.Context(), c.method, "https://api"+c.url, http.NoBody)
			require.NoError(t, err)
			got, ok := parse(r)
			assert.Equal(t, !c.not, ok)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestBuiltInResourcesAreRecognized(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]bool{
		"secrets": true, "secrets/a.b.c": true, "deployments.apps": true, "jobs.batch": true,
		"rollouts.argoproj.io": false, "rollouts.argoproj.io/a": false,
	} {
		assert.Equal(t, want, Watch{Resource: resource}.builtIn(), resource)
	}
}

func TestWatchesHaveNamesForMessages(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "secrets", Watch{Resource: "secrets"}.String())
	assert.Equal(t, "secrets in namespace shop", Watch{"secrets", "shop"}.String())
}
