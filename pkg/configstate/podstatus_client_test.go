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
	assert.True(t, p.reduced.Rotated, "its objects are not those of the first status")
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
	most := large[len("password"):]
	assert.Equal(t, map[string]string{"password": most}, sent(t, most).reduced.Objects, "as much as is kept")
}

func TestPodStatusListIsDecodedItemByItem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		items   int
		version string
	}{
		`{"kind":"L","items":[{"metadata":{"name":"a"}},{}],"metadata":{"resourceVersion":"7"}}`: {2, "7"},
		`{"metadata":{"resourceVersion":"7"},"items":null,"kind":"L"}`:                           {0, "7"},
		`{"items":[],"metadata":{}}`: {0, ""},
	} {
		list, err := readPodStatusList(strings.NewReader(text))
		require.NoError(t, err, text)
		assert.Len(t, list.Items, want.items, text)
		assert.Equal(t, want.version, list.ResourceVersion, text)
	}
	for _, text := range []string{
		"", "{", `{"kind"`, `{"kind":`, `{"kind":"L"`, `{"metadata":7}`, `{"metadata":7,"items":[]}`, `{"items":`, `{"items":[`, `{"items":[1]}`, `{"items":[{}`, `{"items":[{}]`,
		`{}`, `[]`, `"maintenance"`, `7`, `{"message":"maintenance"}`, `{"kind":"Status","metadata":{}}`, // what a proxy may answer
	} {
		_, err := readPodStatusList(strings.NewReader(text))
		assert.Error(t, err, text)
	}
}
