package cluster_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestDaemonSetRollouts(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec                  string
		change                func(k *kit, cart world.Key)
		kept, pods, ready, v2 int
	}{
		"new image":           {"", func(k *kit, cart world.Key) { k.image(cart, "cart:2") }, 0, 2, 2, 2},
		"template annotation": {"", func(k *kit, cart world.Key) { k.set(cart, "a", "spec", "template", "metadata", "annotations", "hash") }, 0, 2, 2, 0},
		"own annotation":      {"", func(k *kit, cart world.Key) { k.set(cart, "a", "metadata", "annotations", "record") }, 2, 2, 2, 0},
		"a pod deleted":       {"", func(k *kit, _ world.Key) { k.delete(pod(k.list(world.Pods)[0].GetName())) }, 1, 2, 2, 0},
		"broken":              {"", func(k *kit, cart world.Key) { k.image(cart, "cart:broken") }, 1, 2, 1, 0},
		"broken and undone":   {"", func(k *kit, cart world.Key) { k.image(cart, "cart:broken"); k.settle(); k.image(cart, "cart:1") }, 1, 2, 2, 0},
		"both at once":        {"updateStrategy: {rollingUpdate: {maxUnavailable: 2}}", func(k *kit, cart world.Key) { k.image(cart, "cart:broken") }, 0, 2, 0, 0},
		"OnDelete": {
			"updateStrategy: {type: OnDelete}",
			func(k *kit, cart world.Key) {
				k.image(cart, "cart:2")
				k.settle()
				k.delete(pod(k.list(world.Pods)[0].GetName()))
			},
			1, 2, 2, 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				cart := k.apply(workload("DaemonSet", "cart:1", tc.spec))
				k.settle()
				before := k.ready()
				require.Len(t, before, 2)
				tc.change(k, cart)
				k.settle()
				assert.Len(t, common(before, k.ready()), tc.kept)
				assert.Len(t, k.pods(), tc.pods)
				assert.Len(t, k.ready(), tc.ready)
				assert.Len(t, k.running("cart:2"), tc.v2)
				assert.EqualValues(t, tc.ready, k.status(cart, "numberReady"))
			})
		})
	}
}

func TestDaemonSetUndoUsesTheOldRevision(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				k.choose, k.store.form = shuffled(seed), form(seed)%forms
				cart := k.apply(workload("DaemonSet", "cart:1"))
				k.set(cart, "r", "metadata", "annotations", "record")
				k.settle()
				first := k.list(world.ControllerRevisions)[0]
				assert.Equal(t, "r", first.GetAnnotations()["record"])
				k.image(cart, "cart:2")
				k.settle()
				k.image(cart, "cart:1")
				k.settle()
				revisions := k.list(world.ControllerRevisions)
				require.Len(t, revisions, 2)
				for _, r := range revisions {
					want := int64(2)
					if r.GetName() == first.GetName() {
						want = 3
					}
					assert.EqualValues(t, want, r.Object["revision"])
				}
				for _, p := range k.list(world.Pods) {
					assert.Equal(t, first.GetLabels()["controller-revision-hash"], p.GetLabels()["controller-revision-hash"])
				}
				k.delete(cart)
				k.settle()
				assert.Empty(t, k.pods())
				assert.Empty(t, k.list(world.ControllerRevisions))
			})
		})
	}
}

func TestDaemonSetRunsOnePodOnEachNode(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		k.apply(workload("DaemonSet", "cart:1"))
		k.settle()
		nodes := []any{}
		for _, p := range k.list(world.Pods) {
			nodes = append(nodes, p.Object["spec"].(map[string]any)["nodeName"])
		}
		assert.ElementsMatch(t, []any{"node-a", "node-b"}, nodes)
	})
}
