package referent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// The digest that is written into an object would change that of its parents: each change below would count twice.
func TestOwnDigestOfAnObjectIsNoFieldOfIt(t *testing.T) {
	t.Parallel()
	const all, one = "metadata.annotations", `metadata.annotations['` + annotation + `']`
	annotations := func(all map[string]any) func(*unstructured.Unstructured) {
		return with(all, "metadata", "annotations")
	}
	bare := func(*unstructured.Unstructured) {}
	for name, c := range map[string]struct {
		field         string
		publish       bool
		before, after func(*unstructured.Unstructured)
		counts        bool
	}{
		"the first digest": {all, true, bare, annotated("v1:x"), false},
		"another digest": {
			all, true, annotations(map[string]any{annotation: "v1:x", "team": "a"}), annotations(map[string]any{annotation: "v1:y", "team": "a"}), false,
		},
		"another annotation": {
			all, true, annotations(map[string]any{annotation: "v1:x", "team": "a"}), annotations(map[string]any{annotation: "v1:x", "team": "b"}), true,
		},
		"each annotation":                       {"metadata.annotations[*]", true, bare, annotated("v1:x"), false},
		"by its key":                            {one, true, bare, annotated("v1:x"), false},
		"the annotation of another controller":  {all, false, annotated("v1:x"), annotated("v1:y"), true},
		"the annotation that another one wrote": {one, false, bare, annotated("v1:x"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t,
				referent.Definition{ID: "a", GVR: gvr("a"), Publish: c.publish, Self: referent.SelfDefinition{Fields: []string{c.field}}},
				referent.Definition{ID: "b", GVR: gvr("b"), Refs: []referent.EdgeDefinition{{Resource: "a", Name: "spec.a"}}},
			)
			w.set("b/o", map[string]any{"a": "o"})
			w.set("a/o", nil, c.before)
			w.Evaluate()
			before := w.entry("b/o")
			w.set("a/o", nil, c.after)
			w.Evaluate()
			assert.Equal(t, c.counts, before != w.entry("b/o"))
		})
	}
}
