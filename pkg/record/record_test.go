package record_test

import (
	"encoding/json"
	"fmt"
	"os"
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

func present(first byte, rv string) digest.State {
	return digest.State{UID: "u", ResourceVersion: rv, Entries: map[digest.KeyID]digest.Entry{
		key: {first, 0xff}, otherKey: {first, 0xee},
	}}
}

func TestNew(t *testing.T) {
	t.Parallel()
	states := map[reference.Ref]digest.State{
		configMap("app"):  present(1, "81234"),
		configMap("gone"): {Absent: true},
		secret("db"):      present(2, "80011"),
	}
	const plain = "v1:1c9e04ab:configmap/app=01ff000000000000@81234,configmap/gone=-,secret/db=02ff000000000000@80011"
	const folded = `^v1:1c9e04ab:\*=[0-9a-f]{16}@[0-9a-f]{8}$`
	tests := map[string]struct {
		reason string
		id     digest.KeyID
		states map[reference.Ref]digest.State
		limit  int
		want   string
		folded bool
		err    string
	}{
		"roomy":   {reason: "The plain case.", id: key, states: states, limit: record.MaxSize, want: plain},
		"exactly": {reason: "The limit is inclusive.", id: key, states: states, limit: len(plain), want: plain},
		"too long by one": {
			reason: "Detection stays, causes are lost.", id: key, states: states, limit: len(plain) - 1, want: folded, folded: true,
		},
		"room for a fold only": {reason: "A fold has 39 bytes.", id: key, states: states, limit: 39, want: folded, folded: true},
		"no room": {
			reason: "A stamp never makes an object invalid.", id: key, states: states, limit: 38, err: "room for a config record of 38 bytes: at least 39 are needed",
		},
		"negative room": {reason: "The annotations are full already.", id: key, states: states, limit: -1, err: "at least 39 are needed"},
		"another key": {
			reason: "Entries are those under the key asked for.", id: otherKey, states: map[reference.Ref]digest.State{secret("db"): present(2, "1")},
			limit: record.MaxSize, want: "v1:77aa00ff:secret/db=02ee000000000000@1",
		},
		"empty":              {reason: "Nothing is tracked.", id: key, limit: record.MaxSize, want: "v1::"},
		"empty without room": {reason: "Nor is there anything to fold.", id: key, limit: 3, err: "at least 39 are needed"},
		"strange resource version": {
			reason: "It is opaque; one that does not fit is left out, since it only saves a read.", id: key,
			states: map[reference.Ref]digest.State{secret("db"): present(2, "1,secret/x=-")}, limit: record.MaxSize,
			want: "v1:1c9e04ab:secret/db=02ff000000000000",
		},
		"unread": {
			reason: "What was not read must not be recorded as absent.", id: key,
			states: map[reference.Ref]digest.State{secret("db"): {UID: "u", ResourceVersion: "1"}, configMap("app"): present(1, "1")},
			limit:  record.MaxSize, err: "no Entry under digest key \"1c9e04ab\" for secret/db: ",
		},
		"unread and too long": {
			reason: "Neither may it be folded.", id: key,
			states: map[reference.Ref]digest.State{secret("db"): {UID: "u", ResourceVersion: "1"}}, limit: 1, err: "no Entry",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, folded, err := record.New(tc.id, tc.states, tc.limit)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err, tc.reason)
				return
			}
			require.NoError(t, err, tc.reason)
			assert.Equal(t, tc.folded, folded)
			assert.LessOrEqual(t, len(r.String()), tc.limit, "the limit is kept")
			if tc.folded {
				assert.Regexp(t, tc.want, r.String(), tc.reason)
			} else {
				assert.Equal(t, tc.want, r.String(), tc.reason)
			}
			parsed, err := record.Parse(r.String())
			require.NoError(t, err)
			assert.Equal(t, r, parsed, "what is made can be read")
		})
	}
}

// TestNewKeepsEveryLimit: the size is computed, not tried; it must be right for all sizes.
func TestNewKeepsEveryLimit(t *testing.T) {
	t.Parallel()
	states := map[reference.Ref]digest.State{}
	for i := range 12 {
		states[configMap(strings.Repeat("c", i+1))] = present(byte(i), strings.Repeat("9", i))
		states[secret(strings.Repeat("s", i+1))] = digest.State{Absent: true}
		whole, folded, err := record.New(key, states, record.MaxSize)
		require.NoError(t, err)
		require.False(t, folded)
		size := len(whole.String())
		_, folded, err = record.New(key, states, size)
		require.NoError(t, err)
		assert.False(t, folded, "%d bytes fit into %d", size, size)
		_, folded, err = record.New(key, states, size-1)
		require.NoError(t, err)
		assert.True(t, folded, "%d bytes do not fit into %d", size, size-1)
	}
}

// TestFoldDetects: a folded Record still tells that something changed, and whether it was the set.
func TestFoldDetects(t *testing.T) {
	t.Parallel()
	states := map[reference.Ref]digest.State{}
	for i := range 5000 {
		states[secret(fmt.Sprintf("credentials-%d", i))] = present(byte(i), "1")
	}
	before, folded, err := record.New(key, states, record.MaxSize)
	require.NoError(t, err)
	require.True(t, folded, "5,000 Secrets do not fit")

	states[secret("credentials-7")] = present(0xaa, "2")
	changed, _, err := record.New(key, states, record.MaxSize)
	require.NoError(t, err)
	assert.NotEqual(t, before.Fold.Entry, changed.Fold.Entry, "a changed content is seen")
	assert.Equal(t, before.Fold.Set, changed.Fold.Set, "the set is the same")

	delete(states, secret("credentials-7"))
	fewer, _, err := record.New(key, states, record.MaxSize)
	require.NoError(t, err)
	assert.NotEqual(t, before.Fold.Set, fewer.Fold.Set, "a changed set is told apart")
}

func TestItem(t *testing.T) {
	t.Parallel()
	assert.True(t, record.Item{Key: key}.Absent())
	assert.False(t, record.Item{Key: key, Entry: entryA}.Absent())
}

// TestGolden pins the texts that are stored on workloads, from the objects to the annotation.
func TestGolden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var golden struct {
		Key                              []byte
		Namespace                        string
		ConfigMaps                       map[string]map[string]string
		Secrets                          map[string]map[string][]byte
		Absent                           []string
		ResourceVersion                  string
		Hash, Record, Baseline, Adoption string
		Folded                           string
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	ring, err := digest.NewRing(map[string][]byte{"key": golden.Key})
	require.NoError(t, err)
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
	newest, _ := ring.Newest()

	hash, err := digest.Hash(newest.ID, states)
	require.NoError(t, err)
	assert.Equal(t, golden.Hash, hash)
	r, _, err := record.New(newest.ID, states, record.MaxSize)
	require.NoError(t, err)
	assert.Equal(t, golden.Record, r.String())
	assert.Equal(t, golden.Baseline, record.Baseline{Over: hash, Record: r}.String())
	assert.Equal(t, golden.Adoption, record.Baseline{Record: r}.String())
	f, folded, err := record.New(newest.ID, states, len(golden.Folded))
	require.NoError(t, err)
	require.True(t, folded)
	assert.Equal(t, golden.Folded, f.String())
}
