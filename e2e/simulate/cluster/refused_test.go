package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/cluster"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// strict is a store that refuses ReplicaSets as invalid.
type strict struct {
	*memory
	on bool
}

func (s *strict) Store(key world.Key, object world.Object) (world.Object, error) {
	if s.on && key.Resource == world.ReplicaSets {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, key.Name, nil)
	}
	return s.memory.Store(key, object)
}

func TestRefusedReplicaSetStopsTheRollout(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:1"))
		k.settle()
		before := k.ready()
		store := &strict{memory: k.store}
		var refused []world.Key
		k.c = cluster.New(store, cluster.Options{Refused: func(key world.Key, _ world.Object) { refused = append(refused, key) }})
		k.store.changed = k.c.Dirty
		k.settle()
		store.on = true
		k.set(cart, "long", "metadata", "annotations", "bulk")
		k.set(cart, int64(2), "spec", "replicas")
		k.settle()
		assert.Len(t, refused, 1, "it is tried again only when something changes")
		assert.Equal(t, before, k.ready(), "the real controller does not even scale")
		k.image(cart, "cart:2")
		k.settle()
		assert.Equal(t, before, k.ready())
		store.on = false
		k.set(cart, "short", "metadata", "annotations", "bulk")
		k.settle()
		assert.Len(t, k.running("cart:2"), 2)
	})
}
