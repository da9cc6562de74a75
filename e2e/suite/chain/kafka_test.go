package chain_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

const (
	referents = "pod-reloader.cs.sap.com/referents"
	theProxy  = "kafkaproxies.kroxylicious.io/my-proxy"
)

// kafka is a namespace with a proxy, what it refers to, and the Deployment that runs it.
type kafka struct {
	*fixture.Fixture
	proxy observe.Workload
	// rolled is how often the Deployment has been restarted.
	rolled int
	// graph has the barrier.
	graph *graphFixture
}

// newKafka makes a valid graph, and waits until pod-reloader knows it.
func newKafka(t *testing.T) *kafka {
	t.Helper()
	return newKafkaOn(t, shared)
}

func newKafkaOn(t *testing.T, in *installation.Installation) *kafka {
	t.Helper()
	return newKafkaIn(fixture.New(t, in))
}

// newKafkaIn makes it in a namespace that exists.
func newKafkaIn(f *fixture.Fixture) *kafka {
	f.Helper()
	k := &kafka{Fixture: f, graph: &graphFixture{Fixture: f}}
	k.Secret("tls", fixture.Data{"tls.crt": "1"})
	k.ConfigMap("trust", fixture.Data{"ca.pem": "1"})
	k.apply("KafkaService", "service", `{bootstrapServers: "kafka:9092", tls: {certificateRef: {name: tls}, trustAnchorRef: {kind: ConfigMap, name: trust}}}`)
	k.apply("KafkaProtocolFilter", "filter", `{type: Encryption, configTemplate: {kms: vault}}`)
	k.apply("KafkaProxyIngress", "ingress", `{clusterIP: {protocol: TLS}}`)
	k.apply("KafkaProxy", "my-proxy", `{replicas: 1}`)
	k.apply("VirtualKafkaCluster", "cluster", `{proxyRef: {name: my-proxy}, targetKafkaServiceRef: {name: service},
		filterRefs: [{name: filter}], ingresses: [{ingressRef: {name: ingress}}]}`)
	k.proxy = k.Deployment("proxy", fixture.Uses{Annotations: map[string]string{referents: theProxy}})
	k.AwaitAdopted(k.proxy, theProxy)
	k.Settled()
	k.graph.written.Clear()
	// The Deployment may have been created before its graph was known as a whole.
	k.rolled = len(k.Watcher.Changes(k.proxy))
	require.LessOrEqual(k, k.rolled, 1)
	return k
}

func object(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind})
	u.SetName(name)
	return u
}

// apply creates a resource, which its operator finds valid.
func (k *kafka) apply(kind, name, spec string) {
	k.Helper()
	u := object(kind, name)
	u.SetNamespace(k.Namespace)
	fields := map[string]any{}
	require.NoError(k, yaml.Unmarshal([]byte(spec), &fields))
	u.Object["spec"] = fields
	require.NoError(k, k.Create(k.Context(), u))
	k.operate(kind, name, true)
}

// edit changes the spec of a resource, by a JSON merge patch.
func (k *kafka) edit(kind, name, patch string) {
	k.Helper()
	k.graph.edit(kind, name, patch)
}

// operate writes the status as the operator does that has seen the latest generation.
func (k *kafka) operate(kind, name string, resolved bool) {
	k.Helper()
	status := "False"
	if resolved {
		status = "True"
	}
	k.setStatus(kind, name, func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(),
			"conditions":         []any{map[string]any{"type": "ResolvedRefs", "status": status}},
		}
	})
}

// setStatus writes the status of a resource, again where pod-reloader has published a digest on it just then.
func (k *kafka) setStatus(kind, name string, set func(*unstructured.Unstructured)) {
	k.Helper()
	if k.graph != nil { // a test with an installation of its own does not count restarts
		k.graph.written.Store(kind, true)
	}
	k.Await("the status of "+name, func() error {
		u := object(kind, name)
		require.NoError(k, k.Client.Get(k.Context(), client.ObjectKey{Namespace: k.Namespace, Name: name}, u))
		set(u)
		err := k.Status().Update(k.Context(), u)
		if !apierrors.IsConflict(err) {
			require.NoError(k, err)
		}
		return err
	})
}

// rolls requires one more restart than before, and no further one.
func (k *kafka) rolls(why string) {
	k.Helper()
	k.rolled++
	k.AwaitChanges(k.proxy, k.rolled, why)
	k.stays(why)
}

// stays requires that there is no further restart.
func (k *kafka) stays(why string) {
	k.Helper()
	k.graph.settled()
	k.RequireChanges(k.proxy, k.rolled, why)
}
