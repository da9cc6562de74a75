package cluster_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestDeletedNamespaceIsEmptied(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		shop := k.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		k.apply(workload("Deployment", "cart:1"))
		k.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}")
		k.settle()
		k.delete(shop)
		k.settle()
		for _, resource := range world.Resources() {
			assert.Empty(t, k.list(resource), resource.Plural)
		}
		k.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		k.apply(workload("Deployment", "cart:1"))
		k.settle()
		assert.Len(t, k.ready(), 4)
	})
}

func TestTerminatingNamespaceIsEmptiedAndRemoved(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		shop := k.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		k.apply(workload("StatefulSet", "cart:1"))
		k.settle()
		k.set(shop, "2000-01-01T00:00:00Z", "metadata", "deletionTimestamp")
		k.settle()
		assert.Empty(t, k.pods())
		_, ok := k.store.Get(shop)
		assert.False(t, ok, "the namespace is empty, and gone")
	})
}

func TestTerminatingNamespaceWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		shop := k.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		app := k.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: app, finalizers: [example.com/held]}}")
		k.apply(workload("Deployment", "cart:1"))
		k.settle()
		k.set(shop, "2000-01-01T00:00:00Z", "metadata", "deletionTimestamp")
		k.settle()
		assert.Empty(t, k.pods())
		assert.NotNil(t, world.Meta(k.get(app)).GetDeletionTimestamp())
		k.get(shop)
		k.delete(app)
		k.settle()
		_, ok := k.store.Get(shop)
		assert.False(t, ok, "the namespace is empty, and gone")
	})
}

func TestForegroundDeletionEndsAfterTheDependents(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				inBubble(t, func(k *kit) {
					k.choose = shuffled(seed)
					cart := k.apply(workload(kind, "cart:1"))
					k.settle()
					k.image(cart, "cart:2")
					k.settle()
					k.store.changed = func(c world.Commit) {
						if c.New == nil && c.Key == cart {
							assert.Empty(t, k.pods())
							assert.Empty(t, k.list(world.ReplicaSets))
						}
						k.c.Dirty(c)
					}
					k.deleteWith(cart, "foregroundDeletion")
					k.settle()
					_, there := k.store.Get(cart)
					assert.False(t, there, "the dependents are gone, and the workload too")
					assert.Empty(t, k.list(world.ControllerRevisions))
				})
			}
		})
	}
}

func TestForegroundDeletionLeavesWhatAnotherFinalizerHolds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:1"))
		k.settle()
		k.deleteWith(cart, "example.com/held", "foregroundDeletion")
		k.settle()
		assert.Empty(t, k.pods())
		assert.Equal(t, []string{"example.com/held"}, world.Meta(k.get(cart)).GetFinalizers())
	})
}

func TestOwnerReferencesDecideWhatIsCollected(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		references string
		kept       bool
	}{
		"owner of another uid":  {"[{apiVersion: apps/v1, kind: Deployment, name: cart, uid: gone}]", false},
		"owner that never was":  {"[{apiVersion: apps/v1, kind: Deployment, name: none, uid: none}]", false},
		"owner of another kind": {"[{apiVersion: example.com/v1, kind: Shop, name: cart, uid: gone}]", true},
		"one of two":            {"[{apiVersion: apps/v1, kind: Deployment, name: cart, uid: CART}, {apiVersion: v1, kind: Pod, name: other, uid: none}]", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				uid := string(world.Meta(k.get(k.apply(workload("Deployment", "cart:1")))).GetUID())
				references := strings.ReplaceAll(tc.references, "CART", uid)
				app := k.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: app, ownerReferences: " + references + "}}")
				k.settle()
				_, kept := k.store.Get(app)
				assert.Equal(t, tc.kept, kept)
			})
		})
	}
}

func TestRelabeledPodIsReleasedAndReplaced(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		k.apply(workload("Deployment", "cart:1"))
		k.settle()
		before := k.ready()
		one := k.list(world.Pods)[0]
		k.set(pod(one.GetName()), "debug", "metadata", "labels", "app")
		k.settle()
		assert.Len(t, k.ready(), 5)
		assert.Len(t, common(before, k.ready()), 4)
		assert.Empty(t, world.Meta(k.get(pod(one.GetName()))).GetOwnerReferences())
	})
}
