package chain_test

import (
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

const (
	referents = "pod-reloader.cs.sap.com/referents"
	theProxy  = "kafkaproxies.kroxylicious.io/my-proxy"
)

// kafka is a graph of all kinds of Kroxylicious, with the Deployment that runs its proxy.
type kafka struct {
	*graphFixture
	proxy observe.Workload
}

func newKafka(t *testing.T) *kafka {
	t.Helper()
	return newKafkaIn(newGraphFixture(t, shared))
}

// newKafkaIn creates a valid graph, and waits until pod-reloader knows it.
func newKafkaIn(s *graphFixture) *kafka {
	s.Helper()
	s.Secret("tls", fixture.Data{"tls.crt": "1"})
	s.ConfigMap("trust", fixture.Data{"ca.pem": "1"})
	s.apply("KafkaService", "service", `{bootstrapServers: "kafka:9092", tls: {certificateRef: {name: tls}, trustAnchorRef: {kind: ConfigMap, name: trust}}}`)
	s.apply("KafkaProtocolFilter", "filter", `{type: Encryption, configTemplate: {kms: vault}}`)
	s.apply("KafkaProxyIngress", "ingress", `{clusterIP: {protocol: TLS}}`)
	s.apply("KafkaProxy", "my-proxy", `{replicas: 1}`)
	s.apply("VirtualKafkaCluster", "cluster", `{proxyRef: {name: my-proxy}, targetKafkaServiceRef: {name: service},
		filterRefs: [{name: filter}], ingresses: [{ingressRef: {name: ingress}}]}`)
	return &kafka{graphFixture: s, proxy: s.tracks("proxy", theProxy)}
}

// apply creates an object of Kroxylicious, which its operator finds valid.
func (s *graphFixture) apply(kind, name, spec string) {
	s.Helper()
	s.make(kind, name, spec)
	s.report(kind, name, operated)
}
