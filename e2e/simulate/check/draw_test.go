package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
)

// The seeds that are compared in every run have other installations than the default one.
func TestDrawnHistoriesHaveOtherInstallations(t *testing.T) {
	t.Parallel()
	var flags []string
	replicas, others := 0, 0
	for _, seed := range []uint64{1, 2, 3} {
		setup := drawn(seed, 15).Setup
		require.NoError(t, simulate.CheckFlags(setup.Flags))
		assert.Equal(t, installed(false).Flags[0], setup.Flags[0], "no reload waits for the one before")
		flags = append(flags, setup.Flags[1:]...)
		replicas = max(replicas, setup.Replicas)
		if setup.OtherWebhooks != "" {
			others++
		}
	}
	assert.Equal(t, 2, replicas)
	assert.Positive(t, others)
	assert.GreaterOrEqual(t, len(flags), 3)
	assert.False(t, slices.ContainsFunc(flags, func(flag string) bool { return strings.HasPrefix(flag, "--settle") }), "it depends on timing")
}
