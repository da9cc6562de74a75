package chain_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// shared is the installation of the tests. The refractory gate is off, so that a reload too many shows.
var shared *installation.Installation

func TestMain(m *testing.M) {
	os.Exit(installation.Main(m,
		controlplane.Options{Without: []string{controlplane.KWOK, controlplane.Scheduler}},
		installation.Options{KeepRunning: true, Args: []string{
			"--refractory=0s", "--settle=300ms", "--config=configmap:pod-reloader/settings",
		}},
		func(i *installation.Installation) {
			shared = i
			if err := i.ControlPlane().Apply(context.Background(), definitions(), rights, settings()); err != nil {
				panic(err)
			}
		}))
}

// plurals are the resources that are installed at the start, by kind.
var plurals = map[string]string{
	"KafkaService":         "kafkaservices",
	"KafkaProtocolFilter":  "kafkaprotocolfilters",
	"KafkaProxyIngress":    "kafkaproxyingresses",
	"VirtualKafkaCluster":  "virtualkafkaclusters",
	"KafkaProxy":           "kafkaproxies",
	"SchemaRegistryClient": "schemaregistryclients", // by a test
}

const group = "kroxylicious.io"

// definitions are those of all kinds but the one that a test installs.
func definitions() string {
	var all []string
	for _, kind := range []string{"KafkaService", "KafkaProtocolFilter", "KafkaProxyIngress", "VirtualKafkaCluster", "KafkaProxy"} {
		all = append(all, definition(kind))
	}
	return strings.Join(all, "")
}

func definition(kind string) string {
	return controlplane.CustomResource{Group: group, Kind: kind, Plural: plurals[kind], Versions: []string{"v1alpha1"}}.Definition()
}

const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pod-reloader-referents}
rules:
- {apiGroups: [kroxylicious.io], resources: ["*"], verbs: [get, list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pod-reloader-referents}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pod-reloader-referents}
subjects:
- {kind: ServiceAccount, name: pod-reloader, namespace: pod-reloader}
`

const configuration = `apiVersion: pod-reloader.io/v1alpha1
kind: Configuration
referents:
- id: services
  gvr: {group: kroxylicious.io, version: v1alpha1, resource: kafkaservices}
  ready: &ready
    observedGeneration: status.observedGeneration
    conditions: [{type: ResolvedRefs}]
  refs:
  - {to: secrets, name: spec.tls.certificateRef.name}
  - {to: configmaps, name: spec.tls.trustAnchorRef.name, kind: ConfigMap, optional: true}
  publish: true
- id: filters
  gvr: {group: kroxylicious.io, version: v1alpha1, resource: kafkaprotocolfilters}
  ready: *ready
- id: ingresses
  gvr: {group: kroxylicious.io, version: v1alpha1, resource: kafkaproxyingresses}
  ready: *ready
- id: registries
  gvr: {group: kroxylicious.io, version: v1alpha1, resource: schemaregistryclients}
- id: virtualclusters
  gvr: {group: kroxylicious.io, version: v1alpha1, resource: virtualkafkaclusters}
  ready: *ready
  refs:
  - {to: services, name: spec.targetKafkaServiceRef.name}
  - {to: filters, name: "spec.filterRefs[*].name"}
  - {to: ingresses, name: "spec.ingresses[*].ingressRef.name"}
  - {to: registries, name: spec.registryRef.name}
- id: proxies
  gvr: {group: kroxylicious.io, version: v1alpha1, resource: kafkaproxies}
  self: none
  referrers: [{from: virtualclusters, name: spec.proxyRef.name}]
`

func settings() string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: pod-reloader, name: settings}\ndata:\n  config.yaml: |\n    " +
		strings.ReplaceAll(strings.TrimSpace(configuration), "\n", "\n    ") + "\n"
}
