package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// walk does random acts between random passes, and then settles. It returns the names of the pieces of work in their order.
func walk(k *kit, cart world.Key, seed uint64) []string {
	random := rand.New(rand.NewPCG(seed, 2))
	var trace []string
	k.choose = func(pending []string) string {
		chosen := pending[random.IntN(len(pending))]
		trace = append(trace, chosen)
		return chosen
	}
	for range 60 {
		k.sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		switch random.IntN(8) {
		case 0:
			k.image(cart, fmt.Sprintf("cart:%d", random.IntN(3)))
		case 1:
			k.image(cart, "cart:broken")
		case 2:
			if cart.Resource != world.DaemonSets {
				k.set(cart, int64(random.IntN(7)), "spec", "replicas")
			}
		case 3:
			if pods := k.list(world.Pods); len(pods) > 0 {
				k.delete(pod(pods[random.IntN(len(pods))].GetName()))
			}
		default:
			for range random.IntN(10) {
				if pending := k.c.Pending(); len(pending) > 0 {
					k.c.Work(k.choose(pending))
				}
			}
		}
	}
	k.image(cart, "cart:9")
	k.settle()
	return trace
}

func TestRandomWalksEndWithThePodsOfTheTemplate(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"Deployment":  careful,
		"StatefulSet": parallel, // with ordered pods a broken pod stays
		"DaemonSet":   "",
	}
	for kind, spec := range cases {
		for seed := range uint64(30) {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(k *kit) {
					k.store.form = form(seed) % forms
					cart := k.apply(workload(kind, "cart:1", spec))
					walk(k, cart, seed)
					want, found, _ := unstructured.NestedFieldNoCopy(k.get(cart), "spec", "replicas")
					if !found {
						want = 2
					}
					assert.EqualValues(t, want, len(k.running("cart:9"))) //nolint:testifylint // any type of number
					assert.Len(t, k.pods(), len(k.running("cart:9")))
				})
			})
		}
	}
}

func TestSameSequenceGivesTheSameObjects(t *testing.T) {
	t.Parallel()
	var traces [][]string
	var stored []string
	for range 2 {
		inBubble(t, func(k *kit) {
			traces = append(traces, walk(k, k.apply(workload("Deployment", "cart:1")), 7))
			all := ""
			for _, resource := range world.Resources() {
				all += text(k.store.List(resource, ""))
			}
			stored = append(stored, all)
		})
	}
	assert.True(t, slices.Equal(traces[0], traces[1]), "both runs do the same in the same order")
	assert.Equal(t, stored[0], stored[1])
}
