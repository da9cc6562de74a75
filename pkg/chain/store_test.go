package chain_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// A conversion webhook that hangs must not take the time in which ConfigMaps and Secrets are read.
func TestCustomResourcesThatAreNotAnsweredLeaveTimeForTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.unanswered.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		states, err := chain.ReadLive(ctx, awaiting{w}, w.Chain, "ns", []reference.Ref{proxy, tls})
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(began))
		assert.NotEmpty(t, states[tls].Entries)
		assert.Equal(t, w.State("ns", proxy).Entries, states[proxy].Entries, "the graph answers")
		assert.Empty(t, states[proxy].Unverified, "no read is outstanding")
	})
}

// As with ConfigMaps and Secrets, the webhook and the loop do not wait for each other.
func TestLiveReadsOfTheLoopThatHangHoldUpNoneOfTheWebhook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(proxies, "p", map[string]any{"of": "the watch"})
		w.Configure([]referent.Definition{{ID: "proxies", GVR: proxies}})
		w.pass(time.Second)
		w.unanswered.Store(true)
		hanging, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 100 {
			go func() { _, _ = chain.ReadLive(hanging, w, w.Chain, "ns", []reference.Ref{proxy}) }()
		}
		synctest.Wait()
		w.unanswered.Store(false)
		w.client.PrependReactor("get", proxies.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"of": "the API server"}}}
			object.SetNamespace("ns")
			object.SetName("p")
			return true, object, nil
		})
		ctx, end := context.WithTimeout(t.Context(), 2*time.Second)
		defer end()
		states, err := chain.Admission{Chain: w.Chain}.ReadLive(ctx, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		require.NotEmpty(t, states[proxy].Entries)
		assert.NotEqual(t, w.State("ns", proxy).Entries, states[proxy].Entries, "it is read live")
	})
}

// awaiting fails as a client does when the time is over.
type awaiting struct{ *world }

func (a awaiting) ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return a.world.ReadLive(ctx, namespace, refs)
}
