package digest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// secretOf makes a recognisable key.
func secretOf(c byte) []byte {
	return bytes.Repeat([]byte{c}, 32)
}

// collisions are two keys with the same ID.
var collisions = [2][]byte{[]byte("colliding-key-of-a-test-00113112"), []byte("colliding-key-of-a-test-00126635")}

func ringOf(t testing.TB, data map[string][]byte) digest.Ring {
	t.Helper()
	ring, err := digest.NewRing(data)
	require.NoError(t, err)
	return ring
}

func idOf(t testing.TB, secret []byte) digest.KeyID {
	t.Helper()
	key, ok := ringOf(t, map[string][]byte{"k": secret}).Newest()
	require.True(t, ok, "the ring has a key")
	return key.ID
}

func TestNewRing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		data   map[string][]byte
		want   [][]byte // oldest first
		err    string
	}{
		"one": {
			reason: "The state after the first start.",
			data:   map[string][]byte{"key": secretOf('a')},
			want:   [][]byte{secretOf('a')},
		},
		"three": {
			reason: "The name of the data key says which is newer.",
			data:   map[string][]byte{"2026-01": secretOf('b'), "2025-01": secretOf('c'), "2027-01": secretOf('a')},
			want:   [][]byte{secretOf('c'), secretOf('b'), secretOf('a')},
		},
		"the same twice": {
			reason: "A copied key is one key, as new as its newest copy.",
			data:   map[string][]byte{"1": secretOf('a'), "2": secretOf('b'), "3": secretOf('a')},
			want:   [][]byte{secretOf('b'), secretOf('a')},
		},
		"longer": {
			reason: "A user may provide a key.",
			data:   map[string][]byte{"key": bytes.Repeat([]byte("a"), 33)},
			want:   [][]byte{bytes.Repeat([]byte("a"), 33)},
		},
		"empty": {reason: "A Secret without a key is another error than a short key.", err: "has no data"},
		"short": {
			reason: "A short key can be guessed; the error names the place and shows nothing of the value.",
			data:   map[string][]byte{"good": secretOf('a'), "weak": []byte("hunter2-hunter2-hunter2-hunter2")},
			err:    `data key "weak" has 31 bytes: at least 32`,
		},
		"another key with the same ID": {
			reason: "The ID has 32 bits, and the digests of two keys must not be mistaken for each other.",
			data:   map[string][]byte{"1": collisions[0], "2": collisions[1]},
			err:    `data key "2" has the same key ID 15c34a0e`,
		},
		"empty value": {
			reason: "So can an empty one.",
			data:   map[string][]byte{"key": {}},
			err:    `data key "key" has 0 bytes`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ring, err := digest.NewRing(tc.data)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err, tc.reason)
				assert.NotContains(t, err.Error(), "hunter2", "no error shows a key")
				assert.True(t, ring.Empty(), "an invalid ring has no keys")
				return
			}
			require.NoError(t, err, tc.reason)
			var want, got []digest.KeyID
			for _, secret := range tc.want {
				want = append(want, idOf(t, secret))
			}
			for _, key := range ring.Keys() {
				got = append(got, key.ID)
			}
			assert.Equal(t, want, got, tc.reason)
			newest, ok := ring.Newest()
			require.True(t, ok, "the ring has keys")
			assert.Equal(t, want[len(want)-1], newest.ID, "the last signs")
			for _, id := range want {
				found, ok := ring.Key(id)
				assert.True(t, ok, "all verify")
				assert.Equal(t, id, found.ID)
			}
		})
	}
}

func TestEmptyRing(t *testing.T) {
	t.Parallel()
	var ring digest.Ring
	assert.True(t, ring.Empty(), "the zero value is an empty ring")
	assert.Empty(t, ring.Keys())
	_, ok := ring.Newest()
	assert.False(t, ok, "there is no newest key")
	_, ok = ring.Key("1c9e04ab")
	assert.False(t, ok, "there is no key")
	assert.True(t, ring.Equal(digest.Ring{}), "all empty rings are equal")
}

func TestRingEqual(t *testing.T) {
	t.Parallel()
	one := ringOf(t, map[string][]byte{"1": secretOf('a'), "2": secretOf('b')})
	tests := map[string]struct {
		reason string
		data   map[string][]byte
		want   bool
	}{
		"same":        {reason: "A resync brings the same.", data: map[string][]byte{"1": secretOf('a'), "2": secretOf('b')}, want: true},
		"other names": {reason: "What the data keys are called does not matter.", data: map[string][]byte{"x": secretOf('a'), "y": secretOf('b')}, want: true},
		"other order": {reason: "Another key signs.", data: map[string][]byte{"2": secretOf('a'), "1": secretOf('b')}},
		"rotated":     {reason: "A key has come.", data: map[string][]byte{"1": secretOf('a'), "2": secretOf('b'), "3": secretOf('c')}},
		"retired":     {reason: "A key has gone.", data: map[string][]byte{"2": secretOf('b')}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := ringOf(t, tc.data)
			assert.Equal(t, tc.want, one.Equal(other), tc.reason)
			assert.Equal(t, tc.want, other.Equal(one), tc.reason)
		})
	}
}

func TestRingDoesNotShare(t *testing.T) {
	t.Parallel()
	data := map[string][]byte{"1": secretOf('a')}
	ring := ringOf(t, data)
	clear(data["1"])
	keys := ring.Keys()
	keys[0] = digest.Key{}
	assert.True(t, ring.Equal(ringOf(t, map[string][]byte{"1": secretOf('a')})), "a ring is immutable, and so its own")
}

// TestNothingShowsAKey prints keys in every way, also as a field of another struct.
func TestNothingShowsAKey(t *testing.T) {
	t.Parallel()
	secret := []byte("correct-horse-battery-staple-tiger")
	ring := ringOf(t, map[string][]byte{"key": secret})
	key, _ := ring.Newest()
	type inside struct {
		Key  digest.Key
		key  digest.Key
		Ring digest.Ring
		ring digest.Ring
		keys []digest.Key
	}
	holder := inside{Key: key, key: key, Ring: ring, ring: ring, keys: ring.Keys()}
	leaks := []string{
		string(secret), hex.EncodeToString(secret), strings.ToUpper(hex.EncodeToString(secret)),
		base64.StdEncoding.EncodeToString(secret), strings.Trim(fmt.Sprintf("%d", secret[:8]), "[]"),
		strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", secret[:8]), "[]byte{"), "}"), fmt.Sprintf("%q", secret),
	}
	for _, value := range []any{key, &key, ring, &ring, ring.Keys(), holder, &holder, []any{holder}, map[string]any{"a": holder}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "% x", "%o", "%b", "%c", "%U"} {
			printed := fmt.Sprintf(verb, value)
			for _, leak := range leaks {
				assert.NotContains(t, printed, leak, "%s of %T", verb, value)
			}
		}
		encoded, err := json.Marshal(value)
		require.NoError(t, err)
		for _, leak := range leaks {
			assert.NotContains(t, string(encoded), leak, "JSON of %T", value)
		}
	}
	assert.Equal(t, "digest key "+string(key.ID), fmt.Sprint(key), "the id is what one wants to see")
	assert.Equal(t, "digest keys ["+string(key.ID)+"]", fmt.Sprint(ring))
}

func TestNewKey(t *testing.T) {
	t.Parallel()
	key, err := digest.NewKey(strings.NewReader(strings.Repeat("x", 40)))
	require.NoError(t, err)
	assert.Equal(t, bytes.Repeat([]byte("x"), 32), key, "as many bytes as the digest has, from the given source alone")
	_, err = digest.NewRing(map[string][]byte{"key": key})
	require.NoError(t, err, "what is made is good for a ring")

	_, err = digest.NewKey(strings.NewReader("too short"))
	require.Error(t, err, "a key is whole or not at all")
	broken := errors.New("no entropy")
	_, err = digest.NewKey(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
}

func FuzzNewRing(f *testing.F) {
	f.Add("1", secretOf('a'), "2", secretOf('b'))
	f.Add("1", secretOf('a'), "2", secretOf('a'))
	f.Add("key", []byte("short"), "", []byte{})
	f.Fuzz(func(t *testing.T, name1 string, key1 []byte, name2 string, key2 []byte) {
		ring, err := digest.NewRing(map[string][]byte{name1: key1, name2: key2})
		short := len(key2) < 32 || name1 != name2 && len(key1) < 32
		require.Equal(t, short, err != nil, "only a short key is refused")
		if err != nil {
			assert.Less(t, len(err.Error()), 1024, "a message is bounded whatever the input")
			return
		}
		newest, ok := ring.Newest()
		require.True(t, ok, "a ring without an error has a key")
		want := key2
		if name1 > name2 {
			want = key1
		}
		assert.Equal(t, idOf(t, want), newest.ID, "the last in order signs")
	})
}
