package chain_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		assert.Equal(t, "the configuration has not been read yet", w.hold())
		require.NoError(t, w.Check(proxy.Kind), "nothing is wrong before")
		w.Configure(nil)
		w.pass(time.Second)
		assert.Equal(t, `the referents of the configuration have no resource "kafkaproxies.kroxylicious.io"`, w.hold())
		require.Error(t, w.Check(proxy.Kind))
		w.Configure(proxyToSecret())
		w.pass(time.Second)
		require.NoError(t, w.Check(proxy.Kind))
		assert.Equal(t, "missing", w.hold())
		w.put(proxies, "p", map[string]any{"service": "s"})
		w.pass(time.Second)
		assert.Equal(t, "kafkaservices.kroxylicious.io/s is missing", w.hold())
		w.put(services, "s", map[string]any{"secret": "tls"})
		w.pass(time.Second)
		assert.Equal(t, "secret/tls is missing", w.hold())
		w.set(tls, "1")
		w.pass(time.Second)
		assert.Empty(t, w.hold())
	})
}

func TestAHoldNamesThePlaceInTheConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.put(proxies, "p", map[string]any{"service": "no name"})
		w.pass(time.Second)
		assert.Equal(t, `invalid: referents[1].refs[0]: "no name" names no object`, w.hold())
	})
}

func TestAHoldThatLastsIsReportedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		began := time.Now()
		require.NoError(t, w.client.Resource(services).Namespace("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
		w.pass(time.Second)
		w.take()
		since := w.State("ns", proxy).Hold.Since
		assert.Less(t, since.Sub(began), time.Second)
		w.pass(digest.ReportHoldAfter)
		assert.Contains(t, w.take(), "ns kafkaproxies.kroxylicious.io/p", "the loop looks once more")
		w.pass(time.Hour)
		assert.Empty(t, w.take(), "and no more")
		assert.Equal(t, since, w.State("ns", proxy).Hold.Since)
	})
}

// What a neighbour lists or deletes meanwhile, by the thousand, does not keep a hold from being reported.
func TestAHoldThatLastsIsReportedWhateverANeighbourDoes(t *testing.T) {
	t.Parallel()
	const many = 1_200
	tests := map[string]func(w *world){
		"lists what does not exist": func(w *world) {
			for n := range many {
				w.State("other", reference.Ref{Kind: proxy.Kind, Name: fmt.Sprint("missing-", n)})
			}
		},
		"deletes what nothing refers to": func(w *world) {
			for n := range many {
				w.putStatus(services, fmt.Sprint("s-", n), nil)
			}
			w.pass(time.Second)
			for n := range many {
				require.NoError(w, w.client.Resource(services).Namespace("ns").Delete(w.Context(), fmt.Sprint("s-", n), metav1.DeleteOptions{}))
				synctest.Wait()
			}
		},
	}
	for name, neighbour := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.graph()
				require.NoError(t, w.client.Resource(proxies).Namespace("ns").Delete(t.Context(), proxy.Name, metav1.DeleteOptions{}))
				w.pass(time.Second)
				since := w.State("ns", proxy).Hold.Since
				neighbour(w)
				w.pass(time.Second)
				w.take()
				w.pass(digest.ReportHoldAfter)
				assert.True(t, slices.Contains(w.take(), "ns kafkaproxies.kroxylicious.io/p"), "the loop looks once more")
				assert.Equal(t, since, w.State("ns", proxy).Hold.Since)
			})
		})
	}
}

// What nothing asks for any more is forgotten some time later.
func TestHoldsThatAreNotAskedForAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		first := reference.Ref{Kind: proxy.Kind, Name: "missing"}
		since := w.State("ns", first).Hold.Since
		for round := range 2 {
			w.pass(2 * time.Minute)
			for n := range 1_200 {
				w.State("ns", reference.Ref{Kind: proxy.Kind, Name: fmt.Sprintf("missing-%d-%d", round, n)})
			}
		}
		assert.Greater(t, w.State("ns", first).Hold.Since, since, "it was forgotten, and begins again")
	})
}
