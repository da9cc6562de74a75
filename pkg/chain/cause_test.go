package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// crossing is a proxy with a service of its own namespace and one of the namespace infra, each of which refers to a Secret of one name.
func crossing(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.contents[tls] = "1"
	w.put(services, "s", map[string]any{"secret": "tls"})
	shared := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secret": "tls"}}}
	shared.SetNamespace("infra")
	w.store(services, "shared", shared)
	w.put(proxies, "p", map[string]any{"services": []any{
		map[string]any{"name": "s"}, map[string]any{"name": "shared", "namespace": "infra"},
	}})
	w.Configure([]referent.Definition{
		{ID: "services", GVR: services, Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secret"}}},
		{ID: "proxies", GVR: proxies, Refs: []referent.EdgeDefinition{{
			Resource: "services", Name: "spec.services[*].name", Namespace: "spec.services[*].namespace", Namespaces: []string{"infra"},
		}}},
	})
	w.pass(time.Second)
	return w
}

func TestCauseOfAnotherNamespaceIsNamedWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := crossing(t)
		service, root := "kafkaservices.kroxylicious.io/s", "kafkaproxies.kroxylicious.io/p"
		first := w.entry()
		w.set(tls, "2")
		w.pass(time.Second)
		assert.Equal(t, "secret/tls", w.State("ns", proxy).Because(first.Short()))
		assert.Equal(t, []string{"secret/tls", service, root}, w.Path("ns", proxy, "secret/tls"))

		second := w.entry()
		w.ConfigChanged(configstate.Event{Namespace: "infra", Ref: tls, Type: configstate.Modified})
		w.pass(time.Second)
		cause := w.State("ns", proxy).Because(second.Short())
		assert.Equal(t, "secret/infra/tls", cause)
		assert.Equal(t, []string{
			"secret/tls in namespace infra", "kafkaservices.kroxylicious.io/shared in namespace infra", root,
		}, w.Path("ns", proxy, cause))
	})
}
