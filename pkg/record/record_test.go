package record_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestItemOf(t *testing.T) {
	t.Parallel()
	read := digest.State{UID: "u", ResourceVersion: "7", Entries: map[digest.KeyID]digest.Entry{key: {1, 0xff}}}
	strange := read
	strange.ResourceVersion = "1,secret/x=-"
	tests := map[string]struct {
		reason string
		state  digest.State
		id     digest.KeyID
		want   record.Item
		ok     bool
	}{
		"present":       {reason: "The plain case.", state: read, id: key, want: record.Item{Entry: "01ff000000000000", Hint: "7"}, ok: true},
		"absent":        {reason: "Absence is under every key.", state: digest.State{Absent: true}, id: key, ok: true},
		"unread":        {reason: "What was not read must not be recorded as absent.", state: digest.State{UID: "u", ResourceVersion: "7"}, id: key},
		"another key":   {reason: "Entries are those under the key asked for.", state: read, id: otherKey},
		"strange":       {reason: "A version that does not fit is left out: it only saves a read.", state: strange, id: key, want: record.Item{Entry: "01ff000000000000"}, ok: true},
		"nothing known": {reason: "Where nothing may be watched, nothing is recorded.", id: key},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item, ok := record.ItemOf(tc.id, tc.state)
			assert.Equal(t, tc.ok, ok, tc.reason)
			assert.Equal(t, tc.want, item, tc.reason)
			assert.Equal(t, item.Entry == "", item.Absent())
		})
	}
}

func TestBinding(t *testing.T) {
	t.Parallel()
	ours := strings.Repeat("0123456789abcdef", 4)
	tests := map[string]struct{ reason, hash, want string }{
		"none":    {reason: "No hash stays no hash.", hash: "", want: ""},
		"ours":    {reason: "A config-hash is kept as it is.", hash: ours, want: ours},
		"foreign": {reason: "Another program's hash must not break the text.", hash: "a:b", want: "b7cc4f3d8b5c09e6fdf8cf9ba9fea5e5fb9f0e9e1e2f5bb85c8d9ea67ff45dcf"},
		"long":    {reason: "Nor lengthen it.", hash: ours + "0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bound := record.Binding(tc.hash)
			if tc.want == tc.hash {
				assert.Equal(t, tc.want, bound, tc.reason)
			} else {
				assert.Regexp(t, "^[0-9a-f]{64}$", bound, tc.reason)
				assert.NotEqual(t, tc.hash, bound)
			}
			r := record.New(tc.hash, key, map[reference.Ref]record.Item{secret("a"): {}})
			parsed, err := record.Parse(r.String())
			require.NoError(t, err)
			assert.True(t, parsed.BelongsTo(tc.hash), tc.reason)
			assert.False(t, parsed.BelongsTo(tc.hash+"x"), "beside another hash it is void")
		})
	}
}

func TestItemsLeavesOutTheUnknown(t *testing.T) {
	t.Parallel()
	r := record.New("", key, map[reference.Ref]record.Item{configMap("a"): {Entry: entryA}, configMap("b"): {}})
	assert.Equal(t, map[reference.Ref]record.Item{configMap("b"): {}}, r.Items([]reference.Ref{configMap("b"), secret("b")}))
	assert.False(t, r.Empty(), "it has items")
	assert.True(t, record.New("abc", key, nil).Empty(), "it has no items")
}

func TestConfigHashOfARecord(t *testing.T) {
	t.Parallel()
	items := map[reference.Ref]record.Item{configMap("a"): {Entry: entryA, Adopted: true, Hint: "7"}, secret("b"): {}}
	hash, ok := record.New("", key, items).ConfigHash()
	require.True(t, ok, "the content of each item is known")
	assert.Equal(t, digest.HashRecorded(key, map[reference.Ref]string{configMap("a"): entryA, secret("b"): ""}), hash)
	_, ok = record.New("abc", key, nil).ConfigHash()
	assert.False(t, ok, "the empty Record says that nothing is known, not that nothing is tracked")
	_, ok = many(t, 1000).ConfigHash()
	assert.False(t, ok, "a compact Record names no Refs")
}

// many returns a Record that was read from the compact form.
func many(t *testing.T, n int) record.Record {
	t.Helper()
	items := map[reference.Ref]record.Item{}
	for i := range n {
		items[manyRef(i)] = record.Item{Entry: fmt.Sprintf("%016x", i+1), Adopted: i%2 == 0, Hint: fmt.Sprint(80000 + i)}
	}
	text, ok := record.New(strings.Repeat("a", 64), key, items).Text(record.MaxSize)
	require.True(t, ok, "it fits")
	require.LessOrEqual(t, len(text), record.MaxSize)
	r, err := record.Parse(text)
	require.NoError(t, err)
	require.Equal(t, text, r.String(), "what is read is written again as it was")
	return r
}

func manyRef(i int) reference.Ref { return secret(fmt.Sprintf("credentials-of-tenant-%04d", i)) }

func TestCompactRecordKeepsAnItemForEachRef(t *testing.T) {
	t.Parallel()
	r := many(t, reference.MaxTracked)
	assert.Contains(t, r.String(), ":*")
	var refs []reference.Ref
	for i := range reference.MaxTracked {
		refs = append(refs, manyRef(i))
	}
	items := r.Items(append(refs, configMap("never-recorded")))
	require.Len(t, items, reference.MaxTracked)
	for i := range reference.MaxTracked {
		assert.Equal(t, record.Item{Entry: fmt.Sprintf("%016x", i+1), Adopted: i%2 == 0, Hint: fmt.Sprint(80000 + i)}, items[manyRef(i)])
	}
}

func TestCompactRecordKeepsAbsenceAndLosesOnlyHints(t *testing.T) {
	t.Parallel()
	items := map[reference.Ref]record.Item{
		configMap("absent"):  {},
		configMap("adopted"): {Adopted: true},
		configMap("large"):   {Entry: "ffffffffffffffff", Hint: "68719476735"},
		configMap("larger"):  {Entry: "0000000000000000", Hint: "68719476736"},
		configMap("odd"):     {Entry: entryA, Hint: "007"},
		configMap("word"):    {Entry: entryB, Hint: "abc"},
	}
	r := record.New("abc", key, items)
	text, ok := r.Text(len(r.String()) - 1)
	require.True(t, ok, "the compact form fits")
	parsed, err := record.Parse(text)
	require.NoError(t, err)
	for ref, item := range parsed.Items([]reference.Ref{
		configMap("absent"), configMap("adopted"), configMap("large"), configMap("larger"), configMap("odd"), configMap("word"),
	}) {
		want := items[ref]
		if ref.Name != "large" {
			want.Hint = "" // it is no number of 36 bits: the object is read once more
		}
		assert.Equal(t, want, item, ref.Name)
		delete(items, ref)
	}
	assert.Empty(t, items, "each has an item")
}

func TestTextKeepsEveryLimit(t *testing.T) {
	t.Parallel()
	items := map[reference.Ref]record.Item{configMap("configuration"): {Entry: entryA, Hint: "1"}, secret("credentials"): {}}
	r := record.New("abc", key, items)
	for limit := -1; limit <= len(r.String()); limit++ {
		text, ok := r.Text(limit)
		assert.Equal(t, limit >= 64, ok, "two items need 64 bytes: %d", limit)
		if ok {
			assert.LessOrEqual(t, len(text), limit)
		}
	}
	text, ok := r.Text(len(r.String()))
	assert.True(t, ok, "the text fits exactly")
	assert.Equal(t, r.String(), text, "the limit is inclusive, and names are preferred")
}

// TestGolden pins the texts that are stored on workloads, from the objects to the annotation.
func TestGolden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var golden struct {
		Key                            []byte
		Namespace                      string
		ConfigMaps                     map[string]map[string]string
		Secrets                        map[string]map[string][]byte
		Absent                         []string
		ResourceVersion                string
		Hash, Record, Adopted, Compact string
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	ring, err := digest.NewRing(map[string][]byte{"key": golden.Key})
	require.NoError(t, err)
	newest, _ := ring.Newest()
	states := map[reference.Ref]digest.State{}
	for name, data := range golden.ConfigMaps {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: golden.Namespace, Name: name}, Data: data}
		states[configMap(name)] = digest.StateOf(digest.OfConfigMap(object), "uid", golden.ResourceVersion, ring)
	}
	for name, data := range golden.Secrets {
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: golden.Namespace, Name: name}, Data: data}
		states[secret(name)] = digest.StateOf(digest.OfSecret(object), "uid", golden.ResourceVersion, ring)
	}
	for _, name := range golden.Absent {
		states[configMap(name)] = digest.State{Absent: true}
	}
	items, adopted := map[reference.Ref]record.Item{}, map[reference.Ref]record.Item{}
	for ref, state := range states {
		item, ok := record.ItemOf(newest.ID, state)
		require.True(t, ok, "the state has an Entry under the newest key")
		items[ref] = item
		item.Adopted = true
		adopted[ref] = item
	}

	hash, err := digest.Hash(newest.ID, states)
	require.NoError(t, err)
	assert.Equal(t, golden.Hash, hash)
	r := record.New(hash, newest.ID, items)
	assert.Equal(t, golden.Record, r.String())
	assert.Equal(t, golden.Adopted, record.New("", newest.ID, adopted).String())
	compact, ok := r.Text(len(golden.Compact))
	require.True(t, ok, "the compact form fits exactly")
	assert.Equal(t, golden.Compact, compact)
	own, ok := r.ConfigHash()
	require.True(t, ok, "the content of each item is known")
	assert.Equal(t, golden.Hash, own)
}

func TestRecordWithAnAdoptedItemIsNotStamped(t *testing.T) {
	t.Parallel()
	ref := func(i int) reference.Ref {
		return reference.Ref{Kind: reference.Secret, Name: strings.Repeat("n", 200) + strconv.Itoa(i)}
	}
	for name, count := range map[string]int{"with names": 2, "compact": 200} {
		items := map[reference.Ref]record.Item{}
		for i := range count {
			items[ref(i)] = record.Item{Entry: "9a0c4f1122334455"}
		}
		read := func() record.Record {
			text, fits := record.New("1c9e", "77aa00ff", items).Text(record.MaxSize)
			require.True(t, fits, name)
			rec, err := record.Parse(text)
			require.NoError(t, err, name)
			return rec
		}
		assert.True(t, read().Stamped(), name)
		items[ref(0)] = record.Item{Entry: "9a0c4f1122334455", Adopted: true}
		assert.False(t, read().Stamped(), name)
	}
	assert.True(t, record.Record{}.Stamped(), "an empty one says nothing else")
}
