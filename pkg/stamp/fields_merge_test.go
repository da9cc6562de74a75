package stamp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

// merge is a JSON merge patch of a manifest, as kubectl apply and Argo CD send it for a kind without a schema: it replaces the list of the
// containers, and the annotations stay. env is what the manifest has there; nil leaves it out.
func (w *world) merge(t *testing.T, image string, env []any) {
	t.Helper()
	require.Nil(t, w.write(func(raw map[string]any) {
		container := templateOf(raw).(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		container["image"] = image
		delete(container, "env")
		if env != nil {
			container["env"] = env
		}
	}))
}

// manifestEnvs are what a manifest without the variable of Reloader may have.
func manifestEnvs() map[string][]any {
	return map[string][]any{
		"no env":       nil,
		"an empty env": {},
		"another one":  {map[string]any{"name": "X", "value": "x"}},
	}
}

func TestMergePatchWithoutTheVariableRestartsNothing(t *testing.T) {
	t.Parallel()
	for name, env := range manifestEnvs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := under(t, annotation.EnvVars)
			w.merge(t, "image:1", env)
			w.restarts = 0
			w.set(cm("b"), "B")
			w.at(t, 1, "the change")
			for range 2 {
				w.merge(t, "image:1", env)
				w.at(t, 1, "the manifest has not changed")
				assert.Equal(t, sha1B, w.env(variableB))
			}
		})
	}
}

func TestReleaseByMergePatchIsRolledBackToItsPods(t *testing.T) {
	t.Parallel()
	for name, env := range manifestEnvs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := under(t, annotation.EnvVars)
			w.merge(t, "image:1", env)
			w.set(cm("b"), "B")
			w.quiesce()
			before := clone(t, w.stored)
			w.merge(t, "image:2", env)
			w.quiesce()
			assert.Equal(t, sha1B, w.env(variableB), "the variable goes with the hash")
			w.merge(t, "image:1", env)
			w.quiesce()
			assert.Equal(t, templateOf(before), templateOf(w.stored), "the pods of the first ReplicaSet survive")
		})
	}
}

// An undo brings the whole list: the position of its variable is that of its pods.
func TestUndoKeepsThePositionOfItsVariable(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	x, y := map[string]any{"name": "X", "value": "x"}, map[string]any{"name": "Y", "value": "y"}
	w.merge(t, "image:1", []any{x})
	w.set(cm("b"), "B")
	w.quiesce()
	first := clone(t, w.stored)
	w.merge(t, "image:2", []any{x, y, variableOf(t, w)})
	w.quiesce()
	second := clone(t, w.stored)
	for range 2 {
		for _, revision := range []map[string]any{first, second} {
			require.Nil(t, w.write(func(raw map[string]any) { undo(raw, revision) }))
			w.quiesce()
			assert.Equal(t, templateOf(revision), templateOf(w.stored))
		}
	}
}

// variableOf returns the variable that the last reload has written, as it is in the template.
func variableOf(t *testing.T, w *world) map[string]any {
	t.Helper()
	value := w.env(variableB)
	require.NotEmpty(t, value)
	return map[string]any{"name": variableB, "value": value}
}

// A write that brings the old hash has lost Fields only if it changes none, and if no rollback has brought them.
func TestFieldsAreLostBesideTheOldHashOnly(t *testing.T) {
	t.Parallel()
	a, b := strategy.Variable{Container: "c", Name: variableA, Value: "1"}, strategy.Variable{Container: "c", Index: 1, Name: variableB, Value: "1"}
	moved := a
	moved.Index = 5
	changed := b
	changed.Value = "2"
	for name, c := range map[string]struct {
		variables []strategy.Variable
		edit      func(m Managed)
		lost      bool
	}{
		"all":                         {lost: true},
		"one of two":                  {variables: []strategy.Variable{a}, lost: true},
		"none":                        {variables: []strategy.Variable{a, b}},
		"a position":                  {variables: []strategy.Variable{moved, b}},
		"one, and another is changed": {variables: []strategy.Variable{changed}},
		"all, with another hash":      {edit: func(m Managed) { m[Hash] = "other" }},
		"all, with config-restart":    {edit: func(m Managed) { m[Restart] = "4" }},
		"all, with the hash":          {edit: func(m Managed) { delete(m, Hash) }, lost: true},
		"all, with its Record":        {edit: func(m Managed) { m[Record] = record.New(someHash, "", nil).String() }},
	} {
		old, now := Managed{Hash: someHash}, Managed{Hash: someHash}
		old.setFields(strategy.Fields{Variables: []strategy.Variable{a, b}})
		now.setFields(strategy.Fields{Variables: c.variables})
		if c.edit != nil {
			c.edit(now)
		}
		got := edit{old, now}.templateAnnotations()
		if c.lost {
			assert.Equal(t, old, got, name)
		} else {
			assert.Equal(t, now.only(stampKeys()...), got, name)
		}
	}
}
