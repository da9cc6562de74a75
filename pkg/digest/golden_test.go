package digest_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// golden pins what is stored on workloads. The vectors were computed by another program in another language. If one of
// these tests fails, every workload of every cluster would be restarted by an upgrade: raise the version instead.
type golden struct {
	Entries []struct {
		Name, Reason     string
		Key, KeyID       string
		Kind             reference.Kind
		Namespace        string
		ObjectName       string
		Data, BinaryData map[string][]byte
		Entry            string
	}
	Hashes []struct {
		Name, Reason string
		Refs         []struct {
			Kind  reference.Kind
			Name  string
			Entry string
		}
		Hash string
	}
	Revisions []struct {
		Name, Reason        string
		Namespace           string
		ConfigMaps, Secrets []string
		Objects             []struct {
			Kind                 reference.Kind
			Name                 string
			UID, ResourceVersion string
		}
		Digest string
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(text, &g))
	require.NotEmpty(t, g.Entries)
	require.NotEmpty(t, g.Hashes)
	require.NotEmpty(t, g.Revisions)
	return g
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	return b
}

func TestGoldenEntries(t *testing.T) {
	t.Parallel()
	for _, tc := range readGolden(t).Entries {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			ring, err := digest.NewRing(map[string][]byte{"key": unhex(t, tc.Key)})
			require.NoError(t, err)
			key, ok := ring.Newest()
			require.True(t, ok, "the ring has a key")
			assert.Equal(t, tc.KeyID, string(key.ID), "the key id is stored as well")

			meta := metav1.ObjectMeta{Namespace: tc.Namespace, Name: tc.ObjectName}
			var content digest.Content
			if tc.Kind == reference.Secret {
				content = digest.OfSecret(&corev1.Secret{ObjectMeta: meta, Data: tc.Data})
			} else {
				data := map[string]string{}
				for k, v := range tc.Data {
					data[k] = string(v)
				}
				content = digest.OfConfigMap(&corev1.ConfigMap{ObjectMeta: meta, Data: data, BinaryData: tc.BinaryData})
			}
			entry := content.Entry(key)
			assert.Equal(t, tc.Entry, hex.EncodeToString(entry[:]), tc.Reason)
			assert.Equal(t, tc.Entry[:16], entry.Short(), "a Record keeps the first half of the first half")
		})
	}
}

func TestGoldenHashes(t *testing.T) {
	t.Parallel()
	const id = "1c9e04ab"
	for _, tc := range readGolden(t).Hashes {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			states := map[reference.Ref]digest.State{}
			recorded := map[reference.Ref]string{}
			for _, r := range tc.Refs {
				state := digest.State{Absent: r.Entry == ""}
				if !state.Absent {
					state.Entries = map[digest.KeyID]digest.Entry{id: digest.Entry(unhex(t, r.Entry))}
				}
				ref := reference.Ref{Kind: r.Kind, Name: r.Name}
				states[ref] = state
				recorded[ref] = r.Entry[:min(16, len(r.Entry))]
			}
			hash, err := digest.Hash(id, states)
			require.NoError(t, err)
			assert.Equal(t, tc.Hash, hash, tc.Reason)
			assert.Equal(t, tc.Hash, digest.HashRecorded(id, recorded), "a Record suffices to compute it")
		})
	}
}

func TestGoldenRevisions(t *testing.T) {
	t.Parallel()
	for _, tc := range readGolden(t).Revisions {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			states := map[reference.Ref]digest.State{}
			for _, o := range tc.Objects {
				states[reference.Ref{Kind: o.Kind, Name: o.Name}] = digest.State{UID: o.UID, ResourceVersion: o.ResourceVersion}
			}
			assert.Equal(t, tc.Digest, digest.Revision(tc.Namespace, tc.ConfigMaps, tc.Secrets, states), tc.Reason)
			for _, kind := range []reference.Kind{reference.ConfigMap, reference.Secret} {
				for _, name := range append(tc.ConfigMaps, tc.Secrets...) {
					ref := reference.Ref{Kind: kind, Name: name}
					if _, there := states[ref]; !there {
						states[ref] = digest.State{Absent: true}
					}
				}
			}
			assert.Equal(t, tc.Digest, digest.Revision(tc.Namespace, tc.ConfigMaps, tc.Secrets, states),
				"a recorded absence is the same as no state")
		})
	}
}

// TestPublishedRevision holds the one vector that is public without the detour of a file.
func TestPublishedRevision(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "efec662502e54e0608b8416d527adc60299ebc1e67b528d2b835735ddba509cc",
		digest.Revision("test", []string{"test1"}, nil, map[reference.Ref]digest.State{
			{Kind: reference.ConfigMap, Name: "test1"}: {UID: "ConfigMap/test/test1", ResourceVersion: "1"},
		}))
}
