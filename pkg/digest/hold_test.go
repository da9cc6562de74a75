package digest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
)

func TestWithheld(t *testing.T) {
	t.Parallel()
	hold := &digest.Hold{Reason: "not ready"}
	assert.True(t, digest.State{Hold: hold}.Withheld(), "the content is held, and what the pods have is not known")
	assert.False(t, digest.State{}.Withheld(), "it was not read")
	assert.False(t, digest.State{Absent: true, Hold: hold}.Withheld(), "the absence is known")
	assert.False(t, digest.State{Entries: map[digest.KeyID]digest.Entry{}, Hold: hold}.Withheld(), "what the pods have is known")
}

func TestRingUntil(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "123")
	keys := ring.Keys()
	until, ok := ring.Until(keys[1].ID)
	require.True(t, ok, "the ring has this key")
	newest, _ := until.Newest()
	assert.Equal(t, keys[1].ID, newest.ID)
	assert.Len(t, until.Keys(), 2)
	assert.Len(t, ring.Keys(), 3, "the Ring itself remains")
	_, ok = ring.Until("00000000")
	assert.False(t, ok, "the ring does not have this key")
}

func TestBecauseNamesWhatHasChangedSince(t *testing.T) {
	t.Parallel()
	state := digest.State{Steps: []digest.Step{
		{From: "1", Causes: []string{"secret/a"}}, {From: "2", Causes: []string{"secret/c", "secret/b"}}, {From: "3", Causes: []string{"secret/b"}},
	}}
	assert.Equal(t, "secret/a,secret/b,secret/c", state.Because("1"))
	assert.Equal(t, "secret/b", state.Because("3"))
	assert.Empty(t, state.Because("4"), "it is too long ago")
	state.Steps[1].Older = []string{"older key", "oldest key"}
	assert.Equal(t, "secret/b,secret/c", state.Because("oldest key"), "a Record of before a rotation")
	state.Steps = []digest.Step{{From: "1", Causes: []string{"secret/" + strings.Repeat("a", 253), "secret/" + strings.Repeat("b", 253)}}}
	assert.Len(t, state.Because("1"), 260, "what does not fit is left out")
}

func TestBecauseIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		causes []string
		want   int
	}{
		"as many bytes as there may be": {[]string{strings.Repeat("a", 159), strings.Repeat("b", 160)}, 320},
		"one byte more":                 {[]string{strings.Repeat("a", 159), strings.Repeat("b", 161)}, 159},
		"a short one behind a long one": {[]string{"a", strings.Repeat("b", 320), "c"}, 1},
	} {
		state := digest.State{Steps: []digest.Step{{From: "1", Causes: c.causes}}}
		assert.Len(t, state.Because("1"), c.want, "%s: the first causes that fit, in their order", name)
	}
}
