package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

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

// BenchmarkNew is what each history pays at its beginning.
func BenchmarkNew(b *testing.B) {
	for name, options := range map[string]apiserver.Options{
		"plain": {}, "tracked": {TrackFields: true}, "condition": {Webhooks: []apiserver.Webhook{webhook("w", nil, func(w *apiserver.Webhook) {
			w.Config.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: ours}}
		})}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := apiserver.New(options)
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkAdmission is a write through a webhook with conditions that changes the pod template.
func BenchmarkAdmission(b *testing.B) {
	n := 0
	s := server(b, with(webhook("w", func(context.Context, *admissionv1.AdmissionRequest) (string, error) {
		n++
		return fmt.Sprintf(`[{"op":"add","path":"/spec/template/metadata/annotations","value":{"a":"%d"}}]`, n), nil
	}, func(w *apiserver.Webhook) {
		w.Config.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: ours}}
	})))
	prepare(b, s)
	for b.Loop() {
		body := fmt.Sprintf(`{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":"%d"}}}`, n)
		require.Equal(b, 200, send(b, s, patchCall("merge", body)).Code)
	}
}

// BenchmarkWatch is the delivery of one change to ten watches.
func BenchmarkWatch(b *testing.B) {
	s := server(b)
	prepare(b, s)
	var seen atomic.Int64
	for range 10 {
		go func() {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/apis/apps/v1/deployments?watch=true", http.NoBody)
			s.ServeHTTP(&counter{seen: &seen}, r)
		}()
	}
	arrived := func(n int64) {
		for seen.Load() < n {
			runtime.Gosched()
		}
	}
	arrived(10)
	n := int64(0)
	for b.Loop() {
		n++
		require.Equal(b, 200, send(b, s, patchCall("merge", fmt.Sprintf(`{"metadata":{"annotations":{"a":"%d"}}}`, n))).Code)
		arrived(10 * (n + 1))
	}
}

// counter is a ResponseWriter that counts events.
type counter struct {
	seen   *atomic.Int64
	header http.Header
}

func (c *counter) Header() http.Header {
	if c.header == nil {
		c.header = http.Header{}
	}
	return c.header
}
func (c *counter) WriteHeader(int) {}
func (c *counter) Flush()          {}
func (c *counter) Write(p []byte) (int, error) {
	c.seen.Add(1)
	return len(p), nil
}
