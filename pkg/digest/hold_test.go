package digest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

func TestWithheld(t *testing.T) {
	t.Parallel()
	hold := &digest.Hold{Reason: "not ready"}
	assert.True(t, digest.State{Hold: hold}.Withheld())
	assert.False(t, digest.State{}.Withheld(), "it was not read")
	assert.False(t, digest.State{Absent: true, Hold: hold}.Withheld())
	assert.False(t, digest.State{Entries: map[digest.KeyID]digest.Entry{}, Hold: hold}.Withheld(), "what the pods have is known")
}

func TestRingUntil(t *testing.T) {
	t.Parallel()
	ring, err := digest.NewRing(map[string][]byte{
		"1": []byte(strings.Repeat("1", 32)), "2": []byte(strings.Repeat("2", 32)), "3": []byte(strings.Repeat("3", 32)),
	})
	require.NoError(t, err)
	keys := ring.Keys()
	until, ok := ring.Until(keys[1].ID)
	require.True(t, ok)
	newest, _ := until.Newest()
	assert.Equal(t, keys[1].ID, newest.ID)
	assert.Len(t, until.Keys(), 2)
	assert.Len(t, ring.Keys(), 3, "the Ring itself remains")
	_, ok = ring.Until("00000000")
	assert.False(t, ok)
}
