package reference

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLater(t *testing.T) {
	t.Parallel()
	assert.True(t, Later("10", "9"), "they are numbers")
	assert.False(t, Later("9", "10"), "a smaller number is earlier")
	assert.False(t, Later("9", "9"), "the same version is not later than itself")
	assert.False(t, Later("9", ""), "nothing is known of the other one")
	assert.False(t, Later("", "9"), "nothing is known of it")
}
