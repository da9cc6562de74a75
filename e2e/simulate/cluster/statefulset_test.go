package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const parallel = "podManagementPolicy: Parallel"

// ordinals returns the images of cart-0 to cart-3, with a dash for a pod that is missing or not ready.
func ordinals(k *kit) []string {
	images := []string{"-", "-", "-", "-"}
	for i := range images {
		object, ok := k.store.Get(pod(fmt.Sprintf("cart-%d", i)))
		if !ok {
			continue
		}
		if phase, _, _ := unstructured.NestedString(object, "status", "phase"); phase == "Running" {
			images[i] = imageOf(world.Meta(object))
		}
	}
	return images
}

func TestStatefulSetUpdatesFromTheHighestOrdinal(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"ordered": "podManagementPolicy: OrderedReady", "parallel": parallel} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(k *kit) {
					k.store.form = form(seed) % forms
					cart := k.apply(workload("StatefulSet", "cart:1", policy))
					k.settle()
					require.Equal(t, []string{"cart:1", "cart:1", "cart:1", "cart:1"}, ordinals(k))
					first := k.status(cart, "currentRevision")
					choose := shuffled(seed)
					k.choose = func(pending []string) string {
						assert.GreaterOrEqual(t, len(k.ready()), 3)
						for i, image := range ordinals(k)[:3] {
							next := ordinals(k)[i+1]
							assert.False(t, image == "cart:2" && next == "cart:1", "%v", ordinals(k))
						}
						return choose(pending)
					}
					k.image(cart, "cart:2")
					k.settle()
					assert.Len(t, k.running("cart:2"), 4)
					assert.NotEqual(t, first, k.status(cart, "currentRevision"))
					assert.Equal(t, k.status(cart, "currentRevision"), k.status(cart, "updateRevision"))
					assert.EqualValues(t, 4, k.status(cart, "currentReplicas"))
				})
			})
		}
	}
}

var partition = []string{"spec", "updateStrategy", "rollingUpdate", "partition"}

func TestStatefulSetRollouts(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec   string
		change func(k *kit, cart world.Key)
		images []string
		kept   int
	}{
		"template annotation": {"", func(k *kit, cart world.Key) { k.set(cart, "a", "spec", "template", "metadata", "annotations", "hash") }, []string{"cart:1", "cart:1", "cart:1", "cart:1"}, 0},
		"own annotation":      {"", func(k *kit, cart world.Key) { k.set(cart, "a", "metadata", "annotations", "record") }, []string{"cart:1", "cart:1", "cart:1", "cart:1"}, 4},
		"scaled down":         {"", func(k *kit, cart world.Key) { k.set(cart, int64(2), "spec", "replicas") }, []string{"cart:1", "cart:1", "-", "-"}, 2},
		"partition": {
			"updateStrategy: {rollingUpdate: {partition: 2}}",
			func(k *kit, cart world.Key) { k.image(cart, "cart:2") },
			[]string{"cart:1", "cart:1", "cart:2", "cart:2"},
			2,
		},
		"pod below the partition deleted": {
			"updateStrategy: {rollingUpdate: {partition: 2}}",
			func(k *kit, cart world.Key) { k.image(cart, "cart:2"); k.settle(); k.delete(pod("cart-0")) },
			[]string{"cart:1", "cart:1", "cart:2", "cart:2"},
			1,
		},
		"OnDelete": {
			"updateStrategy: {type: OnDelete}",
			func(k *kit, cart world.Key) { k.image(cart, "cart:2"); k.settle(); k.delete(pod("cart-1")) },
			[]string{"cart:1", "cart:2", "cart:1", "cart:1"},
			3,
		},
		"partition lowered": {
			"updateStrategy: {rollingUpdate: {partition: 2}}",
			func(k *kit, cart world.Key) { k.image(cart, "cart:2"); k.settle(); k.set(cart, int64(1), partition...) },
			[]string{"cart:1", "cart:2", "cart:2", "cart:2"},
			1,
		},
		"partition raised, and a pod above the earlier one deleted": {
			"updateStrategy: {rollingUpdate: {partition: 2}}",
			func(k *kit, cart world.Key) {
				k.image(cart, "cart:2")
				k.settle()
				k.set(cart, int64(4), partition...)
				k.settle()
				k.delete(pod("cart-3"))
			},
			[]string{"cart:1", "cart:1", "cart:2", "cart:1"},
			2,
		},
		"OnDelete becomes a rolling update without parameters": {
			"updateStrategy: {type: OnDelete}",
			func(k *kit, cart world.Key) {
				k.image(cart, "cart:2")
				k.settle()
				k.set(cart, "RollingUpdate", "spec", "updateStrategy", "type")
			},
			[]string{"cart:2", "cart:2", "cart:2", "cart:2"},
			0,
		},
		"rolling update without parameters, and a pod deleted while it is stuck": {
			"updateStrategy: {type: RollingUpdate}",
			func(k *kit, cart world.Key) {
				k.image(cart, "cart:broken")
				k.settle()
				k.delete(pod("cart-0"))
			},
			[]string{"cart:1", "cart:1", "cart:1", "-"},
			2,
		},
		"broken": {
			"",
			func(k *kit, cart world.Key) { k.image(cart, "cart:broken") },
			[]string{"cart:1", "cart:1", "cart:1", "-"},
			3,
		},
		"broken and undone: the pod stays": {
			"",
			func(k *kit, cart world.Key) { k.image(cart, "cart:broken"); k.settle(); k.image(cart, "cart:1") },
			[]string{"cart:1", "cart:1", "cart:1", "-"},
			3,
		},
		"broken, undone and deleted by hand": {
			"",
			func(k *kit, cart world.Key) {
				k.image(cart, "cart:broken")
				k.settle()
				k.image(cart, "cart:1")
				k.settle()
				k.delete(pod("cart-3"))
			},
			[]string{"cart:1", "cart:1", "cart:1", "cart:1"},
			3,
		},
		"broken and undone, parallel": {
			parallel,
			func(k *kit, cart world.Key) { k.image(cart, "cart:broken"); k.settle(); k.image(cart, "cart:1") },
			[]string{"cart:1", "cart:1", "cart:1", "cart:1"},
			3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				cart := k.apply(workload("StatefulSet", "cart:1", tc.spec))
				k.settle()
				before := k.ready()
				tc.change(k, cart)
				k.settle()
				assert.Equal(t, tc.images, ordinals(k))
				assert.Len(t, common(before, k.ready()), tc.kept)
			})
		})
	}
}

func TestStatefulSetUndoUsesTheOldRevisionWithANewNumber(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("StatefulSet", "cart:1"))
		k.settle()
		first := k.status(cart, "currentRevision")
		k.image(cart, "cart:2")
		k.settle()
		k.image(cart, "cart:1")
		k.settle()
		assert.Equal(t, first, k.status(cart, "currentRevision"))
		revisions := k.list(world.ControllerRevisions)
		require.Len(t, revisions, 2)
		for _, r := range revisions {
			want := int64(2)
			if r.GetName() == first {
				want = 3
			}
			assert.EqualValues(t, want, r.Object["revision"])
			assert.Equal(t, r.GetLabels()["controller.kubernetes.io/hash"], r.GetName()[len("cart-"):])
			patch, _, _ := unstructured.NestedString(r.Object, "data", "spec", "template", "$patch")
			assert.Equal(t, "replace", patch)
		}
		labels := k.list(world.Pods)[0].GetLabels()
		assert.Equal(t, first, labels["controller-revision-hash"])
		assert.Equal(t, "cart-0", labels["statefulset.kubernetes.io/pod-name"])
	})
}

func TestStatefulSetStartsPodsInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("StatefulSet", "cart:broken"))
		k.settle()
		assert.Len(t, k.pods(), 1)
		k.delete(cart)
		k.settle()
		assert.Empty(t, k.pods())
		assert.Empty(t, k.list(world.ControllerRevisions))
		k.apply(workload("StatefulSet", "cart:broken", parallel))
		k.settle()
		assert.Len(t, k.pods(), 4)
	})
}

func TestStatefulSetCreatedAgainWaitsForTheOldPods(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				k.choose = shuffled(seed)
				cart := k.apply(workload("StatefulSet", "cart:1", parallel))
				k.settle()
				before := k.ready()
				k.delete(cart)
				cart = k.apply(workload("StatefulSet", "cart:1", parallel))
				k.settle()
				assert.Empty(t, common(before, k.pods()))
				assert.Len(t, k.ready(), 4)
				assert.EqualValues(t, 4, k.status(cart, "readyReplicas"))
			})
		})
	}
}

func TestStatefulSetWaitsForMinReadySeconds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		k.apply(workload("StatefulSet", "cart:1", "minReadySeconds: 10"))
		k.settle()
		assert.Len(t, k.ready(), 1)
		at, ok := k.c.Next()
		require.True(t, ok, "there is a time to wait for")
		assert.InDelta(t, 10, time.Until(at).Seconds(), 1)
		k.sleep(time.Until(at))
		k.settle()
		assert.Len(t, k.ready(), 2)
	})
}

func TestStatefulSetHistoryLimitKeepsLiveRevisions(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("StatefulSet", "cart:0", "revisionHistoryLimit: 1"))
		for i := range 4 {
			k.image(cart, fmt.Sprintf("cart:%d", i))
			k.settle()
		}
		assert.Len(t, k.list(world.ControllerRevisions), 2)
	})
}
