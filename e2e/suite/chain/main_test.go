package chain_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/operator"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// settle is how long configuration must be quiet in all installations of the suite.
const settle = 300 * time.Millisecond

// shared is the installation of the tests. The refractory gate is off, so that a reload too many shows.
var shared *installation.Installation

func TestMain(m *testing.M) {
	os.Exit(installation.Main(m,
		controlplane.Podless(),
		installation.Options{KeepRunning: true, Patient: true, LongLease: true, Args: []string{
			"--refractory=0s", "--settle=" + settle.String(), "--config=configmap:pod-reloader/settings",
		}},
		func(i *installation.Installation) {
			shared = i
			if err := furnish(context.Background(), i.ControlPlane()); err != nil {
				panic(err)
			}
		}))
}

const (
	group    = "kroxylicious.io"
	example  = "chain.example.com"
	gateways = "gateway.networking.k8s.io"
)

// furnish installs the custom resources, the permissions on them, and the configuration.
func furnish(ctx context.Context, cp *controlplane.ControlPlane) error {
	text, err := settings()
	if err != nil {
		return err
	}
	if err := operator.DefineCertManager(ctx, cp); err != nil {
		return err
	}
	return cp.Apply(ctx, definitions(), permissions, text)
}

// resources are the custom resources of the tests, by kind.
var resources = map[string]controlplane.CustomResource{
	"KafkaService":         {Group: group, Plural: "kafkaservices", Versions: []string{"v1alpha1"}},
	"KafkaProtocolFilter":  {Group: group, Plural: "kafkaprotocolfilters", Versions: []string{"v1alpha1"}},
	"KafkaProxyIngress":    {Group: group, Plural: "kafkaproxyingresses", Versions: []string{"v1alpha1"}},
	"VirtualKafkaCluster":  {Group: group, Plural: "virtualkafkaclusters", Versions: []string{"v1alpha1"}},
	"KafkaProxy":           {Group: group, Plural: "kafkaproxies", Versions: []string{"v1alpha1"}},
	"SchemaRegistryClient": {Group: group, Plural: "schemaregistryclients", Versions: []string{"v1alpha1"}}, // a test installs it
	"Part":                 {Group: example, Plural: "parts"},
	"Gadget":               {Group: example, Plural: "gadgets", Versions: []string{"v1beta1", "v1"}},
	"LegacyLeaf":           {Group: example, Plural: "legacyleaves"},
	"LegacyRoot":           {Group: example, Plural: "legacyroots"},
	"Operated":             {Group: example, Plural: "operateds"},
	"Realm":                {Group: example, Plural: "realms", ClusterScoped: true},
	"Gateway":              {Group: gateways, Plural: "gateways"},
	"HTTPRoute":            {Group: gateways, Plural: "httproutes"},
}

// definitions are those of all kinds but the one that a test installs.
func definitions() string {
	var all strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(resources)) {
		if kind != "SchemaRegistryClient" {
			all.WriteString(definition(kind))
		}
	}
	return all.String()
}

func definition(kind string) string {
	resource := resources[kind]
	resource.Kind = kind
	return resource.Definition()
}

var permissions = controlplane.Grant("pod-reloader-referents", controlplane.ServiceAccount("pod-reloader", "pod-reloader"),
	`{apiGroups: [kroxylicious.io, chain.example.com], resources: ["*"], verbs: [get, list, watch, patch]}`,
	`{apiGroups: [cert-manager.io], resources: [certificates], verbs: [get, list, watch]}`,
	`{apiGroups: [gateway.networking.k8s.io], resources: [gateways, httproutes], verbs: [get, list, watch]}`)

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

// further are resources of tests: parts refer to each other in any way; gadgets are read in an older version than they are
// stored in; the checksums of legacy ones are those of Kroxylicious; operated ones have that of another controller; realms are in no
// namespace.
const further = `- id: parts
  gvr: {group: chain.example.com, version: v1, resource: parts}
  refs:
  - {to: parts, name: "spec.parts[*].name", namespace: "spec.parts[*].namespace", namespaces: [elsewhere]}
  - {to: parts, name: "spec.optional[*].name", optional: true}
  - {to: secrets, name: "spec.secrets[*].name"}
- id: gadgets
  gvr: {group: chain.example.com, version: v1beta1, resource: gadgets}
  publish: true
  refs: [{to: secrets, name: spec.secretName}]
- id: legacyleaves
  gvr: {group: chain.example.com, version: v1, resource: legacyleaves}
  algorithm: crc32
  publish: true
  annotation: kroxylicious.io/referent-checksum
  refs:
  - {to: secrets, name: "spec.secrets[*].name"}
- id: legacyroots
  gvr: {group: chain.example.com, version: v1, resource: legacyroots}
  algorithm: crc32
  publish: true
  annotation: kroxylicious.io/referent-checksum
  refs: [{to: legacyleaves, name: "spec.leaves[*].name"}]
- id: operateds
  gvr: {group: chain.example.com, version: v1, resource: operateds}
  self: none
  checksum: published
  annotation: operator.example.com/checksum
- id: realms
  gvr: {group: chain.example.com, version: v1, resource: realms}
  scope: Cluster
`

// settings are the resources of the suite and the examples of the documentation, in one configuration.
func settings() (string, error) {
	all := configuration + further
	for _, name := range []string{"certificates.yaml", "gateways.yaml"} {
		items, err := documented(name)
		if err != nil {
			return "", err
		}
		all += items
	}
	return configMap(all), nil
}

// configMap is the one that the program reads, with a configuration.
func configMap(configuration string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: pod-reloader, name: settings}\ndata:\n  config.yaml: |\n    " +
		strings.ReplaceAll(strings.TrimSpace(configuration), "\n", "\n    ") + "\n"
}

// documented returns the items of referents in a block of docs/custom-resources.md that shows a file.
func documented(name string) (string, error) {
	block, err := toolchain.Documented("custom-resources.md", name)
	if err != nil {
		return "", err
	}
	object := corev1.ConfigMap{}
	if err := yaml.Unmarshal([]byte(block), &object); err != nil {
		return "", fmt.Errorf("%s of docs/custom-resources.md: %w", name, err)
	}
	_, items, found := strings.Cut(object.Data["config.yaml"], "\nreferents:\n")
	if !found {
		return "", fmt.Errorf("%s of docs/custom-resources.md has no referents", name)
	}
	return strings.ReplaceAll(strings.TrimPrefix(items, "  "), "\n  ", "\n"), nil
}
