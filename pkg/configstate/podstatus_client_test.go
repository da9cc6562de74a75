package configstate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sent is a status as the API server sends it, with one object.
func sent(t *testing.T, version string) podStatus {
	t.Helper()
	text := fmt.Sprintf(`{"metadata": {"name": "web-0", "generation": 2, "managedFields": [{"manager": "driver"}], "labels": {"a": "b"}},
		"status": {"secretProviderClassName": "vault", "objects": [{"id": "password", "version": %q}]}}`, version)
	var p podStatus
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	return p
}

func TestPodStatusKeepsWhatCounts(t *testing.T) {
	t.Parallel()
	p := sent(t, "1")
	assert.Equal(t, map[string]string{"password": "1"}, p.reduced.Objects)
	assert.Equal(t, "vault", p.reduced.Class)
	assert.True(t, p.reduced.Rotated)
	assert.Empty(t, p.ManagedFields)
	assert.Empty(t, p.Labels)
}

// An author of statuses must not fill the memory with them.
func TestLargePodStatusIsKeptAsDigest(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", maxObjects)
	one, other := sent(t, large+"1").reduced.Objects, sent(t, large+"2").reduced.Objects
	assert.Len(t, one["sha256"], 64)
	assert.Len(t, one, 1)
	assert.NotEqual(t, one, other)
	assert.Equal(t, one, sent(t, large+"1").reduced.Objects)
}
