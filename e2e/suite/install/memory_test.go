package install_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The limit of the Go runtime is 90 % of the container's, which the manifests set to 512Mi: the garbage collector works harder before
// the kernel ends the process.
func TestMemoryLimitIsBelowTheContainers(t *testing.T) {
	t.Parallel()
	running := shared.kubelet.running()
	require.NotEmpty(t, running)
	for _, c := range running {
		metrics, err := c.Metrics(t.Context())
		require.NoError(t, err)
		assert.InDelta(t, 50, metrics.Sum("go_gc_gogc_percent"), 0.1, "%s: GOGC is not set", c.Name())
		assert.InDelta(t, 512<<20*9/10, metrics.Sum("go_gc_gomemlimit_bytes"), 10, c.Name())
	}
}
