package referent_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// golden pins what is stored in annotations. The vectors were computed by another program in another language, those of
// crc32 after the operator of Kroxylicious. If one of these tests fails, every workload that a chain leads to would be
// restarted by an upgrade: raise the version instead.
type golden struct {
	Key    string
	Secret string // the Entry of secret/tls
	HMAC   []struct {
		Name, Reason string
		Self         referent.SelfDefinition
		Child        json.RawMessage
		Published    string
		Digest       string
		Entry        string
	}
	CRC32 []struct {
		Name, Reason string
		Children     []json.RawMessage
		Checksum     string
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(text, &g))
	require.NotEmpty(t, g.HMAC)
	require.NotEmpty(t, g.CRC32)
	return g
}

// unstructuredOf decodes as the API machinery does: whole numbers are int64.
func unstructuredOf(t *testing.T, text json.RawMessage) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(text))
	return o
}

func TestGoldenHMAC(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	secret, err := hex.DecodeString(g.Key)
	require.NoError(t, err)
	keys, err := digest.NewRing(map[string][]byte{"key": secret})
	require.NoError(t, err)
	newest, _ := keys.Newest()
	for _, c := range g.HMAC {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			child := referent.Definition{ID: "children", GVR: gvr("children"), Self: c.Self}
			if c.Published == "" {
				child.Refs = []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secret", Optional: true}}
			} else {
				child.Checksum, child.Annotation = referent.ChecksumPublished, "example.io/checksum"
			}
			compiled := compile(t, child, referent.Definition{
				ID: "roots", GVR: gvr("roots"), Publish: true, Refs: []referent.EdgeDefinition{{Resource: "children", Name: "spec.child"}},
			})
			graph, err := referent.NewGraph(compiled, keys)
			require.NoError(t, err)
			for _, resource := range compiled.Resources() {
				graph.SetSource(resource, "", referent.SourceSynced)
			}
			o := unstructuredOf(t, c.Child)
			graph.Put(compiled.Resources()[0].Read(o))
			graph.Put(compiled.Resources()[1].Read(object("r", map[string]any{"child": o.GetName()})))
			tls, err := hex.DecodeString(g.Secret)
			require.NoError(t, err)
			graph.SetConfig("n", reference.Ref{Kind: reference.Secret, Name: "tls"},
				digest.State{Entries: map[digest.KeyID]digest.Entry{newest.ID: digest.Entry(tls)}})
			graph.SetConfig("n", reference.Ref{Kind: reference.Secret, Name: "gone"}, digest.State{Absent: true})
			graph.Evaluate()

			value, due := graph.Publication(key("roots/r"))
			assert.True(t, due, graph.Hold(key("roots/r")))
			assert.Equal(t, c.Digest, value, c.Reason)
			state, _ := graph.State(key("children/" + o.GetName()))
			entry := state.Entries[newest.ID]
			assert.Equal(t, c.Entry, hex.EncodeToString(entry[:]), c.Reason)
		})
	}
}

func TestGoldenCRC32(t *testing.T) {
	t.Parallel()
	for _, c := range readGolden(t).CRC32 {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t,
				referent.Definition{
					ID: "children", GVR: gvr("children"), Checksum: referent.ChecksumPublished, Annotation: "kroxylicious.io/referent-checksum",
				},
				referent.Definition{
					ID: "roots", GVR: gvr("roots"), Algorithm: referent.AlgorithmCRC32, Publish: true,
					Annotation: "kroxylicious.io/referent-checksum",
					Refs: []referent.EdgeDefinition{
						{Resource: "secrets", Name: "spec.secrets[*]"}, {Resource: "children", Name: "spec.children[*]"},
					},
				},
			)
			var secrets, children []any
			var states []json.RawMessage
			for _, text := range c.Children {
				o := unstructuredOf(t, text)
				if o.GetKind() == "Secret" {
					secrets, states = append(secrets, o.GetName()), append(states, text)
					continue
				}
				children = append(children, o.GetName())
				w.Put(w.resource("children").Read(o))
			}
			w.set("roots/r", map[string]any{"secrets": secrets, "children": children})
			for _, text := range states {
				o := unstructuredOf(t, text)
				s := state(t, "a", "1")
				s.UID, s.ResourceVersion = string(o.GetUID()), o.GetResourceVersion()
				w.SetConfig("n", reference.Ref{Kind: reference.Secret, Name: o.GetName()}, s)
			}
			w.Evaluate()
			value, due := w.Publication(key("roots/r"))
			assert.Equal(t, c.Checksum, value, c.Reason)
			assert.Equal(t, c.Checksum != "", due)
		})
	}
}
