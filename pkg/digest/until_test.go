package digest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
)

func TestUntilLeavesOutNewerKeys(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "123")
	all := make([]digest.KeyID, 0, 3)
	for _, key := range ring.Keys() {
		all = append(all, key.ID)
	}
	for i, key := range ring.Keys() {
		until, ok := ring.Until(key.ID)
		require.True(t, ok, "the key at %d is in the ring", i)
		ids := make([]digest.KeyID, 0, i+1)
		for _, kept := range until.Keys() {
			ids = append(ids, kept.ID)
		}
		assert.Equal(t, all[:i+1], ids, "the keys up to the given one, in their order")
		newest, _ := until.Newest()
		assert.Equal(t, key.ID, newest.ID, "it signs")
	}
	_, ok := ring.Until("ffffffff")
	assert.False(t, ok, "a key that the ring does not hold")
}
