package apiserver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// What a request costs decides how many histories fit into a minute: some ten thousand requests make one.
func BenchmarkRequests(b *testing.B) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	for name, next := range map[string]func(n int) call{
		"get":          func(int) call { return call{method: http.MethodGet, path: cart} },
		"get-protobuf": func(int) call { return call{method: http.MethodGet, path: configMaps + "/app", accept: protobuf} },
		"get-metadata": func(int) call {
			return call{method: http.MethodGet, path: configMaps + "/app", accept: protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
		},
		"list-20":       func(int) call { return call{method: http.MethodGet, path: "/api/v1/secrets"} },
		"poke":          func(n int) call { return patchCall("merge", fmt.Sprintf(`{"metadata":{"annotations":{"a":"%d"}}}`, n)) },
		"merge":         func(n int) call { return patchCall("merge", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)) },
		"merge-nothing": func(int) call { return patchCall("merge", `{"spec":{"replicas":1}}`) },
		"json-patch": func(n int) call {
			return patchCall("json", fmt.Sprintf(`[{"op":"replace","path":"/spec/replicas","value":%d}]`, n))
		},
		"strategic": func(n int) call { return patchCall("strategic-merge", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)) },
		"put":       func(n int) call { return call{method: http.MethodPut, path: cart, body: replicas(n)} },
		"create": func(n int) call {
			return call{method: http.MethodPost, path: configMaps, body: fmt.Sprintf(`{"metadata":{"name":"b%d"},"data":{"a":"b"}}`, n)}
		},
		"update-config": func(n int) call {
			return call{method: http.MethodPut, path: configMaps + "/app", body: fmt.Sprintf(`{"metadata":{"name":"app"},"data":{"a":"%d"}}`, n)}
		},
		"status": func(n int) call {
			c := patchCall("merge", fmt.Sprintf(`{"status":{"replicas":%d}}`, n))
			c.path += "/status"
			return c
		},
	} {
		b.Run(name, func(b *testing.B) {
			commits := 0
			s := server(b, func(o *apiserver.Options) { o.OnCommit = func(world.Commit) { commits++ } })
			prepare(b, s)
			b.ReportAllocs()
			n := 1
			for b.Loop() {
				n++
				a := send(b, s, next(n))
				require.Less(b, a.Code, 300)
			}
		})
	}
}

func patchCall(kind, body string) call {
	contentType := "application/" + kind + "-patch+json"
	return call{method: http.MethodPatch, path: cart, body: body, contentType: contentType}
}

func replicas(n int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"cart","labels":{"team":"x"},"annotations":{"note":"1"}},
"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"cart"}},"template":{"metadata":{"labels":{"app":"cart"}},
"spec":{"containers":[{"name":"c","image":"cart:1","env":[{"name":"A","value":"1"}]}],"volumes":[{"name":"v","configMap":{"name":"app"}}]}}}}`, n)
}

func prepare(b *testing.B, s *apiserver.Server) {
	b.Helper()
	require.Equal(b, 201, post(b, s, deployments, cartBody).Code)
	require.Equal(b, 201, post(b, s, configMaps, `{"metadata":{"name":"app"},"data":{"a":"b"}}`).Code)
	for n := range 20 {
		_, err := s.Store(worldKey("secrets", fmt.Sprintf("s%d", n)), world.Object{"data": map[string]any{"a": "Yg=="}})
		require.NoError(b, err)
	}
}

// BenchmarkTracked is what managed fields cost.
func BenchmarkTracked(b *testing.B) {
	s := server(b, tracked)
	prepare(b, s)
	n := 1
	for b.Loop() {
		n++
		require.Equal(b, 200, send(b, s, patchCall("merge", fmt.Sprintf(`{"metadata":{"annotations":{"a":"%d"}}}`, n))).Code)
	}
}

// BenchmarkStore is what a write of a model of a controller costs.
func BenchmarkStore(b *testing.B) {
	s := server(b)
	prepare(b, s)
	key := worldKey("deployments", "cart")
	n := int64(1)
	for b.Loop() {
		n++
		o, _ := s.Get(key)
		changed := world.Meta(o).DeepCopy()
		changed.Object["status"] = map[string]any{"replicas": n}
		_, err := s.StoreStatus(key, changed.Object)
		require.NoError(b, err)
	}
}
