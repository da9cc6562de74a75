package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// The rules are in force as soon as they are configured; which objects exist is known once they are listed.
func TestWorkloadsAreFoundByTheConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rereads := 0
		w.OnReread(func() { rereads++ })
		labels, owners := map[string]string{"app": "p"}, []reference.Owner{{Group: "kroxylicious.io", Kind: "KafkaService", Name: "s"}}
		_, _, known := w.Workload(labels, owners)
		assert.False(t, known, "no configuration has been read")

		definitions := proxyToSecret()
		definitions[0].Workloads.OwnedBy = true
		definitions[1].Workloads.Selector = "app={name}"
		allow := w.refuse(proxies, apierrors.NewTooManyRequests("later", 1))
		w.Configure(definitions)
		owned, labelled, known := w.Workload(labels, owners)
		assert.True(t, known, "the configuration is known")
		assert.Equal(t, []reference.Ref{{Kind: "kafkaservices.kroxylicious.io", Name: "s"}}, owned)
		assert.Equal(t, []reference.Ref{proxy}, labelled)
		assert.False(t, w.Exists("ns", proxy), "the resource is not listed")
		w.pass(time.Second)
		assert.Equal(t, 1, rereads)
		allow()
		w.pass(time.Minute)
		assert.False(t, w.Exists("ns", proxy), "it does not exist in the list")
		w.take()
		w.put(proxies, "p", map[string]any{})
		w.pass(time.Second)
		assert.True(t, w.Exists("ns", proxy), "it was created")
		assert.False(t, w.Exists("other", proxy), "it was created in another namespace")
		assert.Contains(t, w.take(), "ns kafkaproxies.kroxylicious.io/p", "its workloads are queued")

		w.Configure(nil)
		w.pass(time.Second)
		assert.Equal(t, 2, rereads)
		owned, labelled, known = w.Workload(labels, owners)
		assert.True(t, known, "a configuration without rules is known, too")
		assert.Empty(t, append(owned, labelled...))
		assert.False(t, w.Exists("ns", proxy), "the configuration has no rule for its kind")
	})
}

// Where objects may not be listed there are none: a label finds nothing, and what is recorded is held.
func TestForbiddenObjectsFindNoWorkloads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(proxies, apierrors.NewForbidden(proxies.GroupResource(), "", nil))
		definitions := proxyToSecret()
		definitions[1].Workloads.Selector = "app={name}"
		w.Configure(definitions)
		assert.Equal(t, "the configuration has not been read yet", w.hold())
		w.pass(time.Second)
		assert.False(t, w.Exists("ns", proxy), "its resource may not be listed")
		assert.Equal(t, "forbidden: the resource kafkaproxies.kroxylicious.io", w.hold())
	})
}

// Between the configuration of a resource and its graph, a workload is held without a report.
func TestAResourceThatIsBeingConfiguredIsHeldFromNowOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Configure(nil)
		w.pass(time.Second)
		w.Configure(proxyToSecret())
		state := w.State("ns", proxy)
		require.NotNil(t, state.Hold)
		assert.Equal(t, "its configuration is not in force yet", state.Hold.Reason)
		assert.Equal(t, time.Now(), state.Hold.Since)
	})
}

// The digest key is lost during a hold: there is nothing that the Record could be replaced by, neither before nor after there is
// another key.
func TestTheKeyIsLostDuringAHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		first := w.entry()
		require.NoError(t, w.client.Resource(services).Namespace("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
		w.pass(time.Second)
		assert.Equal(t, "kafkaservices.kroxylicious.io/s is missing", w.hold())

		w.mu.Lock()
		w.ring = digest.Ring{}
		w.mu.Unlock()
		w.KeysChanged()
		w.pass(time.Second)
		assert.NotEmpty(t, w.hold(), "no key")
		w.mu.Lock()
		w.ring = digesttest.Ring(t, "2")
		w.mu.Unlock()
		w.KeysChanged()
		w.pass(time.Second)
		assert.Equal(t, "kafkaservices.kroxylicious.io/s is missing", w.hold(), "a new key")
		w.put(services, "s", map[string]any{"secret": "tls"})
		w.pass(time.Second)
		assert.NotEqual(t, first, w.entry(), "it is under the new key, so that the workload is adopted")
	})
}
