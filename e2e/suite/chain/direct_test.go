package chain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// Without a webhook, the loop writes the pod template itself. What counts of a graph, and what holds it, is the same.
func directModeFollowsTheGraph(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	require.NoError(t, cp.Apply(t.Context(), definitions(), permissions))
	in := installation.NewInTurn(t, cp, installation.Options{
		KeepRunning: true, LongLease: true, WithoutWebhook: true, Args: []string{"--refractory=0s", "--settle=300ms", location},
	})
	require.NoError(t, cp.Apply(t.Context(), configMap(configuration)))
	k := newKafkaIn(newGraphFixture(t, in))
	require.Zero(t, k.rolled[k.proxy], "the workload is adopted: nothing stamps it at its creation")
	k.stays(k.proxy, "adding the annotation restarts nothing")

	k.SetSecret("tls", "tls.crt", "2")
	k.rolls(k.proxy, "a TLS Secret three levels below")
	k.AwaitEvent(k.proxy, "Reloaded", theProxy+" modified (secret/tls)")
	k.edit("KafkaProtocolFilter", "filter", `{"configTemplate":{"kms":"aws"}}`)
	k.report("KafkaProtocolFilter", "filter", operated)
	k.rolls(k.proxy, "a filter")

	k.report("KafkaService", "service", "{note: noise, "+operated[1:])
	k.Merge(k.custom("KafkaService", "service"), "service", `{"metadata":{"labels":{"team":"a"}}}`)
	k.edit("KafkaProxy", "my-proxy", `{"replicas":3}`)
	k.stays(k.proxy, "status, labels and the replicas of the proxy do not count")

	k.report("KafkaService", "service", unresolved)
	k.AwaitEvent(k.proxy, "ReferentHeld", theProxy, "kafkaservices.kroxylicious.io/service is not-ready")
	k.SetSecret("tls", "tls.crt", "3")
	k.stays(k.proxy, "the graph is held")
	why, err := in.Why(t.Context(), "deployment/proxy", "-n", k.Namespace, location)
	require.NoError(t, err)
	assert.Contains(t, why, "held: kafkaservices.kroxylicious.io/service is not-ready")
	k.Merge(k.Get(k.proxy), "proxy", `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	k.rolls(k.proxy, "a release of the workload keeps the state of the graph")
	k.report("KafkaService", "service", operated)
	k.rolls(k.proxy, "the change made during the hold")
}
