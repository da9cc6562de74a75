package digest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const testID = digest.KeyID("1c9e04ab")

func ref(t testing.TB, text string) reference.Ref {
	t.Helper()
	r, err := reference.Parse(text)
	require.NoError(t, err)
	return r
}

func present(first byte) digest.State {
	return digest.State{UID: "u", ResourceVersion: "1", Entries: map[digest.KeyID]digest.Entry{testID: {first}}}
}

func TestState(t *testing.T) {
	t.Parallel()
	ring := ringOf(t, map[string][]byte{"1": secretOf('a'), "2": secretOf('b')})
	content := digest.OfConfigMap(configMapOf(map[string]string{"a": "1"}, nil))
	state := digest.StateOf(content, "uid", "7", ring)
	assert.Equal(t, "uid", state.UID)
	assert.Equal(t, "7", state.ResourceVersion)
	assert.False(t, state.Absent, "the object exists")
	require.Len(t, state.Entries, 2, "one for each key, since a Record may be under any")
	for _, key := range ring.Keys() {
		entry, ok := state.Entry(key.ID)
		assert.True(t, ok, "the state has an Entry under %s", key.ID)
		assert.Equal(t, content.Entry(key), entry)
	}
	_, ok := state.Entry("00000000")
	assert.False(t, ok, "nothing is known under a lost key")
	_, ok = digest.State{UID: "uid", ResourceVersion: "7"}.Entry(testID)
	assert.False(t, ok, "metadata has no Entry")
	absent := present(1)
	absent.Absent = true
	_, ok = absent.Entry(testID)
	assert.False(t, ok, "what is not there has no Entry, whatever else is said of it")
}

func TestHash(t *testing.T) {
	t.Parallel()
	a, b, gone := ref(t, "configmap/a"), ref(t, "secret/a"), digest.State{Absent: true}
	otherRevision := present(1)
	otherRevision.UID, otherRevision.ResourceVersion = "v", "2"
	tests := map[string]struct {
		reason string
		states map[reference.Ref]digest.State
		same   bool
	}{
		"equal":            {reason: "The hash is a function of the Entries.", states: map[reference.Ref]digest.State{a: present(1), b: present(2)}, same: true},
		"another revision": {reason: "Revisions do not count.", states: map[reference.Ref]digest.State{a: otherRevision, b: present(2)}, same: true},
		"another Entry":    {reason: "The content changed.", states: map[reference.Ref]digest.State{a: present(3), b: present(2)}},
		"swapped":          {reason: "Each Entry belongs to its Ref.", states: map[reference.Ref]digest.State{a: present(2), b: present(1)}},
		"one gone":         {reason: "An object was deleted.", states: map[reference.Ref]digest.State{a: present(1), b: gone}},
		"one unlisted":     {reason: "The set changed.", states: map[reference.Ref]digest.State{a: present(1)}},
		"another name":     {reason: "The set changed.", states: map[reference.Ref]digest.State{a: present(1), ref(t, "secret/b"): present(2)}},
		"empty":            {reason: "The set is empty, and that has a hash.", states: nil},
	}
	want, err := digest.Hash(testID, map[reference.Ref]digest.State{a: present(1), b: present(2)})
	require.NoError(t, err)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := digest.Hash(testID, tc.states)
			require.NoError(t, err)
			assert.Equal(t, tc.same, want == got, tc.reason)
			assert.Regexp(t, "^1c9e04ab[0-9a-f]{56}$", got)
		})
	}
}

func TestHashWithoutEntries(t *testing.T) {
	t.Parallel()
	states := map[reference.Ref]digest.State{
		ref(t, "configmap/read"): present(1),
		ref(t, "secret/unread"):  {UID: "u", ResourceVersion: "1"},
		ref(t, "configmap/gone"): {Absent: true},
	}
	_, err := digest.Hash(testID, states)
	require.ErrorContains(t, err, "secret/unread")
	assert.NotContains(t, err.Error(), "configmap", "only what is missing is named")
	_, err = digest.Hash("ffffffff", states)
	require.ErrorContains(t, err, "configmap/read, secret/unread", "under a lost key nothing is known; names are in order")

	for i := range 3 {
		states[ref(t, fmt.Sprintf("secret/more-%d", i))] = digest.State{UID: "u"}
	}
	_, err = digest.Hash("ffffffff", states)
	require.ErrorContains(t, err, "secret/more-2, secret/unread: their", "five names are all named, and nothing is said of more")

	for i := range 5000 {
		states[ref(t, fmt.Sprintf("secret/%s-%d", strings.Repeat("a", 240), i))] = digest.State{UID: "u"}
	}
	_, err = digest.Hash(testID, states)
	require.ErrorContains(t, err, "4999 more")
	assert.Less(t, len(err.Error()), 2048, "an error is bounded, whatever a pattern matches")
}

func TestHashNamesItsKey(t *testing.T) {
	t.Parallel()
	a := ref(t, "configmap/a")
	hash := digest.HashRecorded(testID, map[reference.Ref]string{a: "9a0c4f1122334455"})
	id, ok := digest.KeyOf(hash)
	assert.True(t, ok, "the hash begins with the id of its key")
	assert.Equal(t, testID, id)
	other := digest.HashRecorded("77aa00ff", map[reference.Ref]string{a: "9a0c4f1122334455"})
	assert.Equal(t, hash[8:], other[8:], "the key is in the id and in the Entries")
	for name, text := range map[string]string{
		"none": "", "short": hash[1:], "long": hash + "0", "capitals": strings.ToUpper(hash), "other digits": "g" + hash[1:],
	} {
		_, ok := digest.KeyOf(text)
		assert.False(t, ok, name)
	}
}

func TestRequestIsBoundWithoutGenerations(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "live@3", digest.Bind(digest.AnyCurrent, 3))
	assert.Equal(t, "clean@0", digest.Bind(digest.Clean, 0))
}
