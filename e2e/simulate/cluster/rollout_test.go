package cluster_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestRolloutOfTheCustomKindReplacesPodsWhenTheTemplateChanges(t *testing.T) {
	t.Parallel()
	inBubble(t, func(k *kit) {
		cart := k.apply(strings.Replace(workload("Rollout", "cart:1"), "apps/v1", "argoproj.io/v1alpha1", 1))
		k.settle()
		before := k.ready()
		require.Len(t, before, 4)
		k.set(cart, "a", "metadata", "annotations", "note")
		k.settle()
		assert.Equal(t, before, k.ready(), "its own annotations replace nothing")
		k.image(cart, "cart:2")
		k.settle()
		assert.Empty(t, common(before, k.ready()))
		assert.Len(t, k.list(world.ReplicaSets), 2)
		assert.Equal(t, "Rollout", k.list(world.ReplicaSets)[0].GetOwnerReferences()[0].Kind)
		k.delete(cart)
		k.settle()
		assert.Empty(t, k.pods(), "the garbage collector knows the kind")
	})
}
