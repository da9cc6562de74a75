package pattern

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A set of a table's names takes a bit for each.
func TestBitsetGrowsAsFarAsNeeded(t *testing.T) {
	t.Parallel()
	var b bitset
	for _, n := range []int{0, 63, 64, 200, 5, 199} {
		b.set(n)
		assert.True(t, b.has(n), "%d", n)
	}
	assert.Len(t, b, 4, "words for the numbers up to 200")
	assert.False(t, b.has(1), "1 was not set")
	assert.False(t, b.has(256), "256 is behind the last word")
	b.add(bitset{2, 0, 0, 0, 0, 1})
	assert.Len(t, b, 6, "words for what both have")
	assert.True(t, b.has(1), "word 0 of the other set has 2: bit 1")
	assert.True(t, b.has(200), "it was set before")
	assert.True(t, b.has(320), "word 5 of the other set has 1: bit 320")
}
