package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// TestRolloutWritesFewStatuses counts the writes that a client that watches workloads sees.
func TestRolloutWritesFewStatuses(t *testing.T) {
	t.Parallel()
	for kind, most := range map[string]int{"Deployment": 12, "StatefulSet": 8, "DaemonSet": 8} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(k *kit) {
					k.choose = shuffled(seed)
					cart := k.apply(workload(kind, "cart:1"))
					k.settle()
					writes := 0
					k.store.changed = func(c world.Commit) {
						if c.Key == cart {
							writes++
						}
						k.c.Dirty(c)
					}
					k.image(cart, "cart:2")
					k.settle()
					assert.LessOrEqual(t, writes, most)
					assert.NotEmpty(t, k.running("cart:2"))
					assert.Empty(t, k.running("cart:1"))
				})
			})
		}
	}
}

// TestLostPodThatCannotStartCostsNoPasses is about a Deployment that was complete long ago: its condition Progressing has an
// old time, and it is no rollout that could exceed a deadline.
func TestLostPodThatCannotStartCostsNoPasses(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		config := k.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: app, namespace: shop}}")
		cart := k.apply(strings.ReplaceAll(workload("Deployment", "cart:1"), "image: cart:1",
			"image: cart:1, envFrom: [{configMapRef: {name: app}}]"))
		k.settle()
		k.sleep(time.Hour)
		k.delete(config)
		for _, pod := range k.list(world.Pods)[:1] {
			k.delete(world.Key{Resource: world.Pods, Namespace: "shop", Name: pod.GetName()})
		}
		before := k.passes
		k.settle()
		assert.Less(t, k.passes-before, 20)
		assert.EqualValues(t, 3, k.status(cart, "readyReplicas"))
	})
}
