package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/cluster"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// interrupted is a store in which a user's write comes between a controller's read and its first write of a status.
type interrupted struct {
	*memory
	before func()
}

func (s *interrupted) StoreStatus(key world.Key, object world.Object) (world.Object, error) {
	if before := s.before; before != nil && key.Resource == world.Deployments {
		s.before = nil
		before()
	}
	return s.memory.StoreStatus(key, object)
}

func TestRejectedWriteLeavesTheWorkPending(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(workload("Deployment", "cart:1"))
		store := &interrupted{memory: k.store, before: func() { k.set(cart, "v", "metadata", "annotations", "users") }}
		k.c = cluster.New(store, cluster.Options{})
		k.store.changed = k.c.Dirty
		k.c.Work("deployments/shop/cart")
		assert.Contains(t, k.c.Pending(), "deployments/shop/cart")
		k.settle()
		annotations, _, _ := unstructured.NestedStringMap(k.get(cart), "metadata", "annotations")
		assert.Equal(t, map[string]string{"users": "v", "deployment.kubernetes.io/revision": "1"}, annotations)
		assert.Len(t, k.ready(), 4)
	})
}

func TestUnknownWorkIsIgnored(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		k.c.Work("deployments/shop/none")
		k.c.Work("nonsense")
		assert.Empty(t, k.c.Pending())
	})
}
