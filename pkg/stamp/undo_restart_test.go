package stamp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// adoptions lead to pods that run B although their template has the config-hash of A, as the Record says.
func adoptions() map[string]struct {
	kinds []string
	adopt func(w *world)
} {
	return map[string]struct {
		kinds []string
		adopt func(w *world)
	}{
		"restarted by spec.restartAt": {
			kinds: []string{"Rollout"},
			adopt: func(w *world) { require.Nil(w.t, w.write(w.restarted)) },
		},
		"released while the workload was excluded": {
			kinds: []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout"},
			adopt: func(w *world) {
				require.Nil(w.t, w.write(w.ignore))
				require.Nil(w.t, w.write(setImage("image:v1")))
				require.Nil(w.t, w.write(func(raw map[string]any) { raw["metadata"].(map[string]any)["labels"] = map[string]any{} }))
			},
		},
	}
}

// sameHashWithARestart returns a workload whose release is stuck with content A, the hash of A and config-restart, and the version before
// the release, whose template has the hash of A, too, but whose pods run B.
func sameHashWithARestart(t *testing.T, kind string, adopt func(w *world)) (w *world, v1 map[string]any) {
	t.Helper()
	w = newWorld(t)
	w.kind = kindNamed(t, kind)
	w.set(cm("a"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
	w.set(cm("a"), "B")
	adopt(w)
	w.quiesce()
	v1 = clone(t, w.stored)
	w.set(cm("a"), "A")
	require.Nil(t, w.write(setImage("image:v2")))
	require.Equal(t, w.managedOf(v1)[Hash], w.managed()[Hash])
	require.Contains(t, w.managed(), Restart)
	return w, v1
}

// The undo brings the hash that the Record belongs to. But the pods of that template run what was adopted before config-restart was set.
func TestUndoToTheSameHashFromBeforeConfigRestartReplacesThePods(t *testing.T) {
	t.Parallel()
	for name, c := range adoptions() {
		for _, kind := range c.kinds {
			for circumstance, given := range map[string]func(w *world){
				"alone":                      func(*world) {},
				"another webhook comes next": func(w *world) { w.other = func(raw map[string]any) { annotate(raw, "other", "1") } },
				"under another key":          func(w *world) { w.rotate("2") },
			} {
				t.Run(name+", "+kind+", "+circumstance, func(t *testing.T) {
					t.Parallel()
					w, v1 := sameHashWithARestart(t, kind, c.adopt)
					hash := w.managed()[Hash]
					given(w)
					require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
					assert.NotEqual(t, templateOf(v1), templateOf(w.stored), "the pods that run B are replaced")
					if circumstance != "under another key" {
						assert.Equal(t, hash, w.managed()[Hash])
					}
					before := w.restarts
					w.at(t, before, "the undo, and nothing more")
					w.set(cm("a"), "C")
					w.at(t, before+1, "a change is still seen")
				})
			}
		}
	}
}

// The Record of the release cannot be compared either where the state cannot be read, or where a manifest has the old hash and no Record.
func TestWriteOfTheSameHashWithoutConfigRestartKeepsIt(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(w *world, raw, v1 map[string]any){
		"an undo while the state cannot be read": func(w *world, raw, v1 map[string]any) {
			w.unreadable = true
			w.undoAs(raw, v1)
		},
		"a PUT without the Record": func(w *world, raw, v1 map[string]any) {
			w.undoAs(raw, v1)
			w.setManaged(raw, Record, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, v1 := sameHashWithARestart(t, "StatefulSet", adoptions()["released while the workload was excluded"].adopt)
			before := w.managed()
			require.Nil(t, w.write(func(raw map[string]any) { write(w, raw, v1) }))
			assert.True(t, w.managed().sameStamp(before), "the hash is the same, so that the stamp is kept")
		})
	}
}

// While a workload is excluded, no pod restarts for its configuration: an undo finds its pods.
func TestUndoOfAnExcludedWorkloadBringsTheTemplateAsItWas(t *testing.T) {
	t.Parallel()
	w, v1 := sameHashWithARestart(t, "StatefulSet", adoptions()["released while the workload was excluded"].adopt)
	require.Nil(t, w.write(w.ignore))
	require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
	assert.Equal(t, templateOf(v1), templateOf(w.stored))
}

// The pods of a template run B although it has the hash of A. A change to A sets config-restart; the changes after it must not bring that
// template back.
func TestContentThatComesBackDoesNotBringTheTemplateFromBeforeConfigRestart(t *testing.T) {
	t.Parallel()
	for name, c := range adoptions() {
		for _, kind := range c.kinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				w, v1 := sameHashWithARestart(t, kind, c.adopt)
				v2, restart := clone(t, w.stored), w.managed()[Restart]
				for _, content := range []string{"B", "C", "A"} {
					w.set(cm("a"), content)
					w.at(t, w.restarts+1, "a change restarts the pods once")
					assert.Equal(t, restart, w.managed()[Restart], content)
				}
				assert.Equal(t, templateOf(v2), templateOf(w.stored), "the pods of the release that run A survive")
				undone := func(name string) {
					require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
					w.quiesce()
					assert.NotEqual(t, templateOf(v1), templateOf(w.stored), "the pods that run B are replaced: "+name)
				}
				undone("with the hash of the undone template")
				w.set(cm("a"), "C")
				w.at(t, w.restarts+1, "a change restarts the pods once")
				require.Nil(t, w.write(setImage("image:v3")))
				w.set(cm("a"), "A")
				undone("before the change back is seen")
			})
		}
	}
}
