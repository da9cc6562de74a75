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

const careful = "strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}"

func TestDeploymentReplacesPodsOnlyWhenTheTemplateChanges(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(k *kit, cart world.Key)
		kept   int
		sets   int
	}{
		"new image":           {func(k *kit, cart world.Key) { k.image(cart, "cart:2") }, 0, 2},
		"template annotation": {func(k *kit, cart world.Key) { k.set(cart, "a", "spec", "template", "metadata", "annotations", "hash") }, 0, 2},
		"template label":      {func(k *kit, cart world.Key) { k.set(cart, "a", "spec", "template", "metadata", "labels", "team") }, 0, 2},
		"own annotation":      {func(k *kit, cart world.Key) { k.set(cart, "a", "metadata", "annotations", "record") }, 4, 1},
		"empty list":          {func(k *kit, cart world.Key) { k.set(cart, []any{}, "spec", "template", "spec", "tolerations") }, 4, 1},
		"scaled up":           {func(k *kit, cart world.Key) { k.set(cart, int64(6), "spec", "replicas") }, 4, 1},
		"scaled down":         {func(k *kit, cart world.Key) { k.set(cart, int64(3), "spec", "replicas") }, 3, 1},
		"minReadySeconds":     {func(k *kit, cart world.Key) { k.set(cart, int64(1), "spec", "minReadySeconds") }, 4, 1},
		"other strategy":      {func(k *kit, cart world.Key) { k.set(cart, "Recreate", "spec", "strategy", "type") }, 4, 1},
		"a pod deleted":       {func(k *kit, _ world.Key) { k.delete(pod(k.list(world.Pods)[0].GetName())) }, 3, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				cart := k.apply(workload("Deployment", "cart:1"))
				k.settle()
				before := k.ready()
				require.Len(t, before, 4)
				k.sleep(time.Minute)
				tc.change(k, cart)
				k.settle()
				assert.Len(t, common(before, k.ready()), tc.kept)
				assert.Len(t, k.list(world.ReplicaSets), tc.sets)
				replicas, _, _ := unstructured.NestedInt64(k.get(cart), "spec", "replicas")
				assert.EqualValues(t, replicas, k.status(cart, "updatedReplicas"))
				assert.Len(t, k.pods(), int(replicas))
			})
		})
	}
}

func TestDeploymentUndoRevivesTheOldReplicaSet(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				k.choose = shuffled(seed)
				k.store.form = form(seed) % forms
				cart := k.apply(workload("Deployment", "cart:1", careful))
				k.settle()
				before := k.ready()
				old := k.list(world.ReplicaSets)[0]
				k.sleep(time.Minute)
				k.image(cart, "cart:broken")
				k.settle()
				assert.Equal(t, before, k.ready(), "no old pod goes")
				assert.Len(t, k.pods(), 5)
				k.image(cart, "cart:1")
				k.settle()
				assert.Equal(t, before, k.pods(), "all pods survive")
				assert.Len(t, k.list(world.ReplicaSets), 2)
				revived := k.get(world.Key{Resource: world.ReplicaSets, Namespace: "shop", Name: old.GetName()})
				annotations := world.Meta(revived).GetAnnotations()
				assert.Equal(t, "3", annotations["deployment.kubernetes.io/revision"])
				assert.Equal(t, "1", annotations["deployment.kubernetes.io/revision-history"])
				assert.Equal(t, "3", world.Meta(k.get(cart)).GetAnnotations()["deployment.kubernetes.io/revision"])
			})
		})
	}
}

func TestDeploymentBrokenReleaseKeepsWhatMaxUnavailableAsks(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		strategy   string
		kept, pods int
	}{
		"defaults":          {"{}", 3, 5},
		"numbers":           {"{rollingUpdate: {maxUnavailable: 2, maxSurge: 0}}", 2, 4},
		"percents":          {"{rollingUpdate: {maxUnavailable: 0%, maxSurge: 50%}}", 4, 6},
		"both round to 0":   {"{rollingUpdate: {maxUnavailable: 10%, maxSurge: 0%}}", 3, 4},
		"recreate":          {"{type: Recreate}", 0, 4},
		"all may be absent": {"{rollingUpdate: {maxUnavailable: 100%, maxSurge: 0}}", 0, 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				cart := k.apply(workload("Deployment", "cart:1", "strategy: "+tc.strategy))
				k.settle()
				before := k.ready()
				k.image(cart, "cart:broken")
				k.settle()
				assert.Len(t, common(before, k.ready()), tc.kept)
				assert.Len(t, k.pods(), tc.pods)
				k.sleep(time.Hour)
				k.settle()
				assert.Equal(t, "ProgressDeadlineExceeded", reason(k, cart, "Progressing"))
			})
		})
	}
}

func TestDeploymentRollsNeverBelowMinimumAvailability(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				cart := k.apply(workload("Deployment", "cart:1", careful))
				k.settle()
				choose := shuffled(seed)
				k.choose = func(pending []string) string {
					assert.GreaterOrEqual(t, len(k.ready()), 4)
					return choose(pending)
				}
				k.image(cart, "cart:2")
				k.settle()
				assert.Len(t, k.running("cart:2"), 4)
				assert.Equal(t, "NewReplicaSetAvailable", reason(k, cart, "Progressing"))
			})
		})
	}
}

func TestDeploymentCopiesAnnotationsToItsNewReplicaSetOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:1"))
		k.settle()
		k.set(cart, "r1", "metadata", "annotations", "record")
		k.set(cart, "{}", "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
		generation := world.Meta(k.get(cart)).GetGeneration()
		k.settle()
		k.image(cart, "cart:2")
		k.settle()
		assert.Equal(t, generation+1, world.Meta(k.get(cart)).GetGeneration(), "annotations of the controller leave the generation alone")
		k.edit(cart, func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			delete(annotations, "record")
			annotations["note"] = "n"
			u.SetAnnotations(annotations)
		})
		k.settle()
		for _, set := range k.list(world.ReplicaSets) {
			annotations := set.GetAnnotations()
			assert.Equal(t, "r1", annotations["record"], "nothing is removed")
			assert.NotContains(t, annotations, "kubectl.kubernetes.io/last-applied-configuration")
			assert.Equal(t, "4", annotations["deployment.kubernetes.io/desired-replicas"])
			assert.Equal(t, "5", annotations["deployment.kubernetes.io/max-replicas"])
			if annotations["deployment.kubernetes.io/revision"] == "1" {
				assert.NotContains(t, annotations, "note", "old ReplicaSets are left alone")
			} else {
				assert.Equal(t, "n", annotations["note"])
			}
			assert.Equal(t, set.GetLabels()["pod-template-hash"], set.GetName()[len("cart-"):])
		}
	})
}

func TestPausedDeploymentScalesButDoesNotRoll(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:1"))
		k.settle()
		before := k.ready()
		k.set(cart, true, "spec", "paused")
		k.image(cart, "cart:2")
		k.set(cart, int64(5), "spec", "replicas")
		k.settle()
		assert.Len(t, k.list(world.ReplicaSets), 1)
		assert.Len(t, common(before, k.running("cart:1")), 4)
		assert.Len(t, k.ready(), 5)
		assert.Equal(t, "DeploymentPaused", reason(k, cart, "Progressing"))
		assert.EqualValues(t, world.Meta(k.get(cart)).GetGeneration(), k.status(cart, "observedGeneration"))
		k.set(cart, false, "spec", "paused")
		k.settle()
		assert.Len(t, k.running("cart:2"), 5)
	})
}

func TestScalingInARolloutIsProportional(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:1", "strategy: {rollingUpdate: {maxUnavailable: 2, maxSurge: 3}}"))
		k.set(cart, int64(10), "spec", "replicas")
		k.settle()
		k.image(cart, "cart:broken")
		k.settle()
		assert.Equal(t, []int64{5, 8}, sizes(k))
		k.set(cart, int64(15), "spec", "replicas")
		k.settle()
		assert.Equal(t, []int64{7, 11}, sizes(k), "the example of the Kubernetes documentation")
	})
}

func TestRecreateStartsNewPodsWhenTheOldAreGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:1", "strategy: {type: Recreate}"))
		k.settle()
		k.choose = func(pending []string) string {
			assert.False(t, len(k.running("cart:1")) > 0 && len(k.running("cart:2")) > 0, "pods of only one template run")
			return pending[0]
		}
		k.image(cart, "cart:2")
		k.settle()
		assert.Len(t, k.running("cart:2"), 4)
	})
}

func TestRevisionHistoryLimitRemovesOldestReplicaSets(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:0", "revisionHistoryLimit: 2"))
		for i := range 5 {
			k.image(cart, fmt.Sprintf("cart:%d", i))
			k.settle()
			k.sleep(time.Second)
		}
		revisions := []string{}
		for _, set := range k.list(world.ReplicaSets) {
			revisions = append(revisions, set.GetAnnotations()["deployment.kubernetes.io/revision"])
		}
		assert.ElementsMatch(t, []string{"3", "4", "5"}, revisions)
	})
}

func TestDeletedDeploymentTakesItsPodsAlong(t *testing.T) {
	t.Parallel()
	for name, recreated := range map[string]bool{"gone": false, "created again at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				cart := k.apply(workload("Deployment", "cart:1"))
				k.settle()
				before := k.ready()
				k.delete(cart)
				want := 0
				if recreated {
					k.apply(workload("Deployment", "cart:1"))
					want = 4
				}
				k.settle()
				assert.Empty(t, common(before, k.pods()))
				assert.Len(t, k.ready(), want)
				assert.Len(t, k.list(world.ReplicaSets), want/4)
			})
		})
	}
}

func TestOrphanedPodsAreAdoptedByTheNextDeployment(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:1"))
		k.settle()
		before := k.ready()
		k.deleteWith(cart, "orphan")
		k.settle()
		assert.Equal(t, before, k.ready())
		assert.Empty(t, k.list(world.ReplicaSets)[0].GetOwnerReferences())
		k.apply(workload("Deployment", "cart:1"))
		k.settle()
		assert.Equal(t, before, k.ready())
		assert.Len(t, k.list(world.ReplicaSets), 1)
	})
}

func common(a, b []string) []string {
	found := []string{}
	for _, x := range a {
		for _, y := range b {
			if x == y {
				found = append(found, x)
			}
		}
	}
	return found
}

func reason(k *kit, key world.Key, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(decoded(k.get(key)), "status", "conditions")
	for _, condition := range conditions {
		if c := condition.(map[string]any); c["type"] == kind {
			return c["reason"].(string)
		}
	}
	return ""
}

// sizes returns the wanted sizes of the ReplicaSets, sorted.
func sizes(k *kit) []int64 {
	var all []int64
	for _, set := range k.list(world.ReplicaSets) {
		size, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
		all = append(all, size)
	}
	if len(all) == 2 && all[0] > all[1] {
		all[0], all[1] = all[1], all[0]
	}
	return all
}
