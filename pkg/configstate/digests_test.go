package configstate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func numbered(n int) objectKey {
	return objectKey{"shop", reference.Ref{Kind: reference.ConfigMap, Name: fmt.Sprint(n)}}
}

func version(v string, keys ...digest.KeyID) digest.State {
	state := digest.State{UID: "uid", ResourceVersion: v, Entries: map[digest.KeyID]digest.Entry{}}
	for _, id := range keys {
		state.Entries[id] = digest.Entry{byte(len(v)), id[0]}
	}
	return state
}

// names returns the objects that are kept, the oldest first.
func (d *digests) names(t *testing.T) []string {
	t.Helper()
	var names, back []string
	for n := d.oldest; n != nil; n = n.newer {
		names = append(names, n.key.ref.Name)
	}
	for n := d.newest; n != nil; n = n.older {
		back = append(back, n.key.ref.Name)
	}
	slices.Reverse(back)
	require.Equal(t, names, back)
	require.Len(t, d.entries, len(names))
	return names
}

func TestDigestsDropTheOldest(t *testing.T) {
	t.Parallel()
	d := newDigests(3)
	assert.Empty(t, d.names(t))
	for n := range 3 {
		d.put(numbered(n), version("1", "a"))
	}
	assert.Equal(t, []string{"0", "1", "2"}, d.names(t))
	d.put(numbered(0), version("2", "a"))
	assert.Equal(t, []string{"1", "2", "0"}, d.names(t), "what is read again is the newest")
	d.put(numbered(3), version("1", "a"))
	assert.Equal(t, []string{"2", "0", "3"}, d.names(t))
	d.drop(numbered(0))
	d.drop(numbered(7))
	assert.Equal(t, []string{"2", "3"}, d.names(t))
	d.drop(numbered(2))
	d.drop(numbered(3))
	assert.Empty(t, d.names(t))
	d.put(numbered(4), version("1", "a"))
	assert.Equal(t, []string{"4"}, d.names(t))
}

func TestDigestsReturnWhatWasPut(t *testing.T) {
	t.Parallel()
	d := newDigests(3)
	a, b := digest.Key{ID: "a"}, digest.Key{ID: "b"}
	put := version("1", "a", "b")
	d.put(numbered(1), put)
	for name, tc := range map[string]struct {
		n            int
		uid, version string
		ring         []digest.Key
		found, at    bool
	}{
		"both keys":            {1, "uid", "1", []digest.Key{a, b}, true, true},
		"one key of two":       {1, "uid", "1", []digest.Key{b}, true, true},
		"a key that is newer":  {1, "uid", "1", []digest.Key{a, {ID: "c"}}, false, false},
		"another version":      {1, "uid", "2", []digest.Key{a}, true, false},
		"another object":       {1, "other", "1", []digest.Key{a}, true, false},
		"one that is not kept": {2, "uid", "1", []digest.Key{a}, false, false},
	} {
		state, found := d.get(numbered(tc.n), tc.ring)
		assert.Equal(t, tc.found, found, name)
		if found {
			assert.Equal(t, put, state, name)
		}
		state, found = d.at(numbered(tc.n), tc.uid, tc.version, tc.ring)
		assert.Equal(t, tc.at, found, name)
		if found {
			assert.Equal(t, put, state, name)
		}
	}
}
