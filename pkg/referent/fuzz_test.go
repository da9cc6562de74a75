package referent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// FuzzCompile: whatever is written, it is refused with paths, or it is a Schema under which any object can be evaluated,
// always to the same result.
func FuzzCompile(f *testing.F) {
	for _, definitions := range [][]referent.Definition{kafka(), levels(3, true), {loose()}, {{ID: "a"}}} {
		text, err := json.Marshal(definitions)
		require.NoError(f, err)
		f.Add(text, []byte(`{"metadata":{"name":"a","namespace":"n"},"spec":{"to":["a"],"next":"o","secret":{"name":"s"}}}`))
		f.Add(text, []byte(`{"metadata":{"name":"a","generation":2},"spec":{"to":{"a":1},"next":[{}],"secret":3},"status":[1.5]}`))
	}
	f.Fuzz(func(t *testing.T, configuration, content []byte) {
		var definitions []referent.Definition
		if json.Unmarshal(configuration, &definitions) != nil {
			return
		}
		compiled, faults := referent.Compile(field.NewPath("referents"), definitions, annotation)
		for _, fault := range faults {
			assert.True(t, strings.HasPrefix(fault.Field, "referents"), fault)
			assert.NotContains(t, fault.Error(), "\n")
		}
		if len(faults) > 0 {
			assert.Nil(t, compiled)
			return
		}
		var fields map[string]any
		if json.Unmarshal(content, &fields) != nil {
			return
		}
		results := map[string]bool{}
		for range 2 {
			w := world{TB: t, schema: compiled}
			var err error
			w.Graph, err = referent.NewGraph(compiled, digesttest.Ring(t, "a"))
			require.NoError(t, err)
			for _, resource := range compiled.Resources() {
				w.SetSource(resource, "", referent.SourceSynced)
				w.Put(resource.Read((&unstructured.Unstructured{Object: fields}).DeepCopy()))
			}
			w.Evaluate()
			p := w.Picture()
			results[fmt.Sprint(p.Text(), p.DOT(), p.Mermaid(), w.Held())] = true
			assert.Equal(t, referent.Evaluation{}, w.Evaluate())
		}
		assert.Len(t, results, 1)
	})
}
