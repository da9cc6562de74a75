package chain_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

func TestEachChangeOfTheGraphRestartsThePodsOnce(t *testing.T) {
	t.Parallel()
	k := newKafka(t)
	k.stays(k.proxy, "adding the annotation and finding the graph restarts nothing")

	k.SetSecret("tls", "tls.crt", "2")
	k.rolls(k.proxy, "a TLS Secret three levels below")
	k.AwaitEvent(k.proxy, "Reloaded", theProxy+" modified (secret/tls)")
	why, err := shared.Why(t.Context(), "deployment/proxy", "-n", k.Namespace, fromSettings)
	require.NoError(t, err)
	assert.Contains(t, why, "Path: secret/tls → kafkaservices.kroxylicious.io/service → virtualkafkaclusters.kroxylicious.io/cluster → "+
		theProxy+" → deployment/proxy\n")
	k.SetConfigMap("trust", "ca.pem", "2")
	k.rolls(k.proxy, "a trust ConfigMap")
	for _, change := range []struct{ kind, name, patch string }{
		{"KafkaProxyIngress", "ingress", `{"clusterIP":{"protocol":"TCP"}}`},
		{"KafkaProtocolFilter", "filter", `{"configTemplate":{"kms":"aws"}}`},
		{"KafkaService", "service", `{"bootstrapServers":"kafka:9093"}`},
		{"VirtualKafkaCluster", "cluster", `{"authorization":"none"}`},
	} {
		k.edit(change.kind, change.name, change.patch)
		k.report(change.kind, change.name, operated)
		k.rolls(k.proxy, change.kind)
	}

	// Several objects in one go.
	k.edit("VirtualKafkaCluster", "cluster", `{"authorization":"all"}`)
	k.edit("KafkaService", "service", `{"bootstrapServers":"kafka:9094"}`)
	k.SetSecret("tls", "tls.crt", "3")
	k.report("KafkaService", "service", operated)
	k.report("VirtualKafkaCluster", "cluster", operated)
	k.rolls(k.proxy, "an edit of several objects is one restart")
}

// What the user of the command may not read says nothing of what the installation reads.
func TestWhyWithoutPermissionsOnTheResources(t *testing.T) {
	t.Parallel()
	k := newKafka(t)
	user := controlplane.Identity{User: k.Namespace}
	require.NoError(t, shared.ControlPlane().Apply(t.Context(), controlplane.Grant(k.Namespace, user,
		`{apiGroups: [apps], resources: [deployments], verbs: [get]}`,
		`{apiGroups: [""], resources: [configmaps, secrets], verbs: [get, list]}`)))
	k.Await("what the user may know", func() error {
		why, err := shared.WhyAs(t.Context(), user, "deployment/proxy", "-n", k.Namespace, fromSettings)
		if err != nil {
			return err
		}
		for _, want := range []string{"it is unknown whether a reload is due", "it needs a permission that you do not have"} {
			if !strings.Contains(why, want) {
				return fmt.Errorf("%q is missing:\n%s", want, why)
			}
		}
		return nil
	})
}

// The webhook reads the graph live, so that its stamp is not older than the request. Where the settle time passes before the release, a
// restart comes first, and the release shows nothing.
func TestAReleaseOfAResourceAndItsWorkloadIsOneRestart(t *testing.T) {
	t.Parallel()
	k := newKafka(t)
	proxy := k.Get(k.proxy)
	require.True(t, poll.Repeat(t, 10, "the restart came first, or the webhook was late", func(n int) bool {
		k.edit("KafkaProtocolFilter", "filter", fmt.Sprintf(`{"configTemplate":{"kms":"kms-%d"}}`, n))
		k.SetSecret("tls", "tls.crt", fmt.Sprint("release ", n)) // it is held until the filter is ready
		k.report("KafkaProtocolFilter", "filter", operated)
		release := fmt.Sprint("release-", n)
		prompt := fixture.Promptly(func() {
			k.Merge(proxy, "proxy", fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{"release":%q}}}}}`, release))
		})
		k.Settled()
		changes := k.Watcher.Changes(k.proxy)[k.rolled[k.proxy]:]
		k.rolled[k.proxy] += len(changes)
		require.NotEmpty(t, changes)
		first, _, err := unstructured.NestedString(changes[0].TemplateAfter, "metadata", "labels", "release")
		require.NoError(t, err)
		if !prompt || first != release {
			require.LessOrEqual(t, len(changes), 2, "%v", changes)
			return false
		}
		assert.Len(t, changes, 1, "both at once: %v", changes)
		return true
	}), "an attempt was conclusive")
	k.AwaitEvent(k.proxy, "Reloaded", theProxy+" modified")
}

func TestFieldsOutsideSelfRestartNothing(t *testing.T) {
	t.Parallel()
	k := newKafka(t)

	k.edit("KafkaProxy", "my-proxy", `{"replicas":3}`)
	k.Merge(k.custom("KafkaService", "service"), "service", `{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}}`)
	k.Merge(&corev1.Secret{}, "tls", `{"metadata":{"labels":{"team":"a"}}}`)
	k.SetSecret("tls", "tls.crt", "1")
	k.report("KafkaService", "service", "{note: noise, "+operated[1:])
	k.Merge(k.Get(k.proxy), "proxy", `{"spec":{"replicas":2}}`)

	// A change there and back.
	k.edit("KafkaProtocolFilter", "filter", `{"configTemplate":{"kms":"aws"}}`)
	k.edit("KafkaProtocolFilter", "filter", `{"configTemplate":{"kms":"vault"}}`)
	k.report("KafkaProtocolFilter", "filter", operated)
	k.stays(k.proxy, "scaling, metadata, status and no-op writes")

	k.SetSecret("tls", "tls.crt", "2")
	k.rolls(k.proxy, "what counts still does")
}

func TestAnInvalidLeafHoldsWhateverIsAboveIt(t *testing.T) {
	t.Parallel()
	k := newKafka(t)

	k.edit("KafkaService", "service", `{"bootstrapServers":"nowhere"}`)
	k.report("KafkaService", "service", unresolved)
	k.AwaitEvent(k.proxy, "ReferentHeld", theProxy, "kafkaservices.kroxylicious.io/service is not-ready")
	k.SetSecret("tls", "tls.crt", "2")
	k.stays(k.proxy, "nothing is restarted for an invalid configuration")

	config := "--config=configmap:pod-reloader/settings"
	why, err := shared.Why(t.Context(), "deployment/proxy", "-n", k.Namespace, config)
	require.NoError(t, err)
	assert.Contains(t, why, "held: kafkaservices.kroxylicious.io/service is not-ready")
	graph, err := shared.Graph(t.Context(), config, "-n", k.Namespace, theProxy)
	require.NoError(t, err)
	assert.Contains(t, graph, "not-ready")
	assert.Contains(t, graph, "secret/tls")

	// The pods can be replaced for another reason: they keep the state that they have.
	k.Merge(k.Get(k.proxy), "proxy", `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	k.rolls(k.proxy, "a release of the workload itself")

	k.edit("KafkaService", "service", `{"bootstrapServers":"kafka:9099"}`)
	k.report("KafkaService", "service", operated)
	k.rolls(k.proxy, "mended, it counts once")
}

func TestADeletedObjectHoldsUnlessItIsOptional(t *testing.T) {
	t.Parallel()
	k := newKafka(t)

	k.remove(&corev1.Secret{}, "tls")
	k.AwaitEvent(k.proxy, "ReferentHeld", "secret/tls is missing")
	k.stays(k.proxy, "a required object is missing")
	k.Secret("tls", fixture.Data{"tls.crt": "1"})
	k.stays(k.proxy, "it is back with the same content")

	k.remove(&corev1.ConfigMap{}, "trust")
	k.rolls(k.proxy, "an optional one is gone")

	k.remove(k.custom("KafkaProxy", "my-proxy"), "my-proxy")
	k.AwaitEvent(k.proxy, "ReferentHeld", theProxy+": missing")
	k.stays(k.proxy, "what the workload names itself is gone")
}

// The configuration has a resource that the cluster does not have at first.
func TestADefinitionIsInstalledLater(t *testing.T) {
	t.Parallel()
	k := newKafka(t)

	k.edit("VirtualKafkaCluster", "cluster", `{"registryRef":{"name":"registry"}}`)
	k.report("VirtualKafkaCluster", "cluster", operated)
	k.AwaitEvent(k.proxy, "ReferentHeld", "schemaregistryclients.kroxylicious.io/registry is not-installed")
	k.stays(k.proxy, "the graph is not known as a whole")

	require.NoError(t, shared.ControlPlane().Apply(t.Context(), definition("SchemaRegistryClient")))
	k.Await("the new resource", func() error {
		u := k.custom("SchemaRegistryClient", "registry")
		u.Object["spec"] = map[string]any{"url": "http://registry"}
		return k.Create(t.Context(), u)
	})
	k.rolls(k.proxy, "it is there")
	k.edit("SchemaRegistryClient", "registry", `{"url":"https://registry"}`)
	k.rolls(k.proxy, "it counts")

	require.NoError(t, k.Delete(t.Context(), controlplane.DefinitionNamed("schemaregistryclients."+group)))
	k.Await("the hold", func() error {
		why, err := shared.Why(t.Context(), "deployment/proxy", "-n", k.Namespace, fromSettings)
		if err == nil && !strings.Contains(why, "held: schemaregistryclients.kroxylicious.io/registry is not-installed") {
			err = errors.New(why)
		}
		return err
	})
	k.SetSecret("tls", "tls.crt", "2")
	k.stays(k.proxy, "its removal holds")
}

func TestADigestIsPublished(t *testing.T) {
	t.Parallel()
	k := newKafka(t)
	published := func() string { return k.read("KafkaService", "service").GetAnnotations()[checksum] }
	changes := func(from string) string {
		var now string
		k.Await("another published digest", func() error {
			if now = published(); now == from {
				return errors.New("it is " + now)
			}
			return nil
		})
		return now
	}
	first := changes("")
	assert.Regexp(t, "^v1:[0-9a-f]{64}$", first)
	k.stays(k.proxy, "publishing restarts nothing")

	k.edit("KafkaService", "service", `{"bootstrapServers":"kafka:9093"}`)
	k.report("KafkaService", "service", operated)
	k.rolls(k.proxy, "an edit of the service")
	assert.Equal(t, first, published(), "the digest of a service covers what is below it")

	k.report("KafkaService", "service", unresolved)
	k.AwaitEvent(k.proxy, "ReferentHeld", theProxy, "kafkaservices.kroxylicious.io/service is not-ready")
	k.SetSecret("tls", "tls.crt", "2")
	k.stays(k.proxy, "it is held")
	assert.Equal(t, first, published(), "the last valid one remains")
	k.report("KafkaService", "service", operated)
	k.rolls(k.proxy, "it is valid again")
	last := changes(first)
	assert.NotEqual(t, first, last)

	// Another writer takes the annotation, as an installation with another digest key does.
	other := k.custom("KafkaService", "service")
	other.SetAnnotations(map[string]string{checksum: "another", "example.com/mine": "kept"})
	require.NoError(t, k.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(other), client.FieldOwner("another"), client.ForceOwnership))
	assert.Equal(t, last, changes("another"), "it is written again")
	service := k.read("KafkaService", "service")
	assert.Equal(t, "kept", service.GetAnnotations()["example.com/mine"], "the other annotations are theirs")
	assert.True(t, slices.ContainsFunc(service.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == "pod-reloader/pod-reloader-referents" && f.Operation == metav1.ManagedFieldsOperationApply
	}), "each installation has a field manager of its own")
	k.stays(k.proxy, "the annotation is no part of the graph")
}
