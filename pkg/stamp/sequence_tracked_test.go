package stamp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
)

// auto are the annotations of Reloader's dialect that track what the pod spec references.
func (w *world) auto() map[string]string {
	w.speak(annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	return map[string]string{"reloader.stakater.com/auto": "true"}
}

// uses is a release whose pods reference some ConfigMaps.
func uses(image string, names ...string) func(raw map[string]any) {
	return func(raw map[string]any) {
		setImage(image)(raw)
		sources := []any{}
		for _, name := range names {
			sources = append(sources, map[string]any{"configMapRef": map[string]any{"name": name}})
		}
		spec := raw["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		spec["containers"].([]any)[0].(map[string]any)["envFrom"] = sources
	}
}

// using returns a workload with the annotation auto that references some ConfigMaps with the content A. One that was installed before
// pod-reloader was never stamped.
func using(t *testing.T, kind string, installed bool, names ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.kind = kindNamed(t, kind)
	for _, name := range []string{"a", "c"} {
		w.set(cm(name), "A")
	}
	raw := w.manifest(w.auto())
	uses("image:1", names...)(raw)
	w.away = installed
	require.Nil(t, w.create(raw))
	w.away = false
	w.quiesce()
	return w
}

// rollbacks are the ways in which a release is rolled back: by rollout undo, and by a patch of what differs in two manifests, as Helm's.
func rollbacks() map[string]func(w *world, v1 map[string]any, names ...string) {
	return map[string]func(w *world, v1 map[string]any, names ...string){
		"rollout undo": func(w *world, v1 map[string]any, _ ...string) {
			require.Nil(w.t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
		},
		"helm rollback": func(w *world, _ map[string]any, names ...string) {
			require.Nil(w.t, w.write(uses("image:1", names...)))
		},
	}
}

func TestRollbackOfAReleaseThatTracksMoreKeepsThePodsOfATemplateWithoutAHash(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout"} {
		for way, rollBack := range rollbacks() {
			for name, c := range map[string]struct {
				installed     bool
				before, after []string
			}{
				"nothing is referenced before":  {after: []string{"a"}},
				"installed before pod-reloader": {installed: true, before: []string{"a"}, after: []string{"a", "c"}},
				"installed before, one less":    {installed: true, before: []string{"a", "c"}, after: []string{"a"}},
			} {
				t.Run(kind+", "+way+", "+name, func(t *testing.T) {
					t.Parallel()
					w := using(t, kind, c.installed, c.before...)
					require.NotContains(t, w.managed(), Hash)
					v1 := clone(t, w.stored)
					require.Nil(t, w.write(uses("image:2", c.after...)))
					w.at(t, 1, "the release")
					rollBack(w, v1, c.before...)
					w.at(t, 2, "the rollback")
					assert.Equal(t, templateOf(v1), templateOf(w.stored), "the pods of the first version survive")
				})
			}
		}
	}
}

// The pods of the release start with what is recorded.
func TestChangeOfWhatAReleaseAddsToATemplateWithoutAHashRestartsOnce(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]func(w *world){
		"alone":                    func(*world) {},
		"under --hash=revision":    func(w *world) { w.revision = true },
		"the state cannot be read": func(w *world) { w.unreadable = true },
		"another webhook comes next": func(w *world) {
			w.other = func(raw map[string]any) { annotate(raw, "other", "1", "spec", "template") }
		},
		"excluded by a label": func(w *world) { require.Nil(w.t, w.write(w.ignore)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := using(t, "Deployment", true, "a")
			given(w)
			require.Nil(t, w.write(uses("image:2", "a", "c")))
			w.unreadable = false
			require.Nil(t, w.write(func(raw map[string]any) { raw["metadata"].(map[string]any)["labels"] = map[string]any{} }))
			w.at(t, 1, "the release")
			assert.NotContains(t, w.managed(), Hash)
			w.set(cm("c"), "B")
			w.at(t, 2, "the change")
			assert.Contains(t, w.managed(), Hash)
			last, err := lastOf(w)
			require.NoError(t, err)
			assert.Equal(t, "configmap/c", last.Changes[0].Ref)
		})
	}
}

// What a stuck release drops may change before its rollback: the pods that are left of the first version have what was there before.
func TestRollbackOfAReleaseThatTracksLessComparesWhatItDropped(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout"} {
		for way, rollBack := range rollbacks() {
			for name, after := range map[string][]string{"one of two": {"a"}, "all": {}} {
				for _, changes := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %s, %s, changed %t", kind, way, name, changes), func(t *testing.T) {
						t.Parallel()
						w := using(t, kind, true, "a", "c")
						v1 := clone(t, w.stored)
						require.Nil(t, w.write(uses("image:2", after...)))
						if changes {
							w.set(cm("c"), "B")
						}
						w.at(t, 1, "the release, which does not track it")
						rollBack(w, v1, "a", "c")
						w.at(t, 2, "the rollback")
						if changes {
							assert.NotEqual(t, templateOf(v1), templateOf(w.stored), "the pods of the first version are replaced")
						} else {
							assert.Equal(t, templateOf(v1), templateOf(w.stored), "the pods of the first version survive")
						}
					})
				}
			}
		}
	}
}

// The release after that starts its pods with what is there: what an earlier version tracked is unknown.
func TestWhatTheVersionBeforeTheLastTrackedIsForgotten(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{"one of two": {"a"}, "none": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := using(t, "StatefulSet", true, "a", "c")
			require.Nil(t, w.write(uses("image:2", names...)))
			assert.Contains(t, w.managed()[Record], "configmap/c~")
			require.Nil(t, w.write(uses("image:3", names...)))
			assert.NotContains(t, w.managed()[Record], "configmap/c")
			w.set(cm("c"), "B")
			require.Nil(t, w.write(uses("image:4", "a", "c")))
			w.at(t, 3, "three releases")
			assert.NotContains(t, w.managed(), Hash)
		})
	}
}

// The annotations of the first version come back with its template, and with them what it has recorded.
func TestUndoOfADeploymentForgetsWhatTheReleaseHasAdded(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]string{"nothing is referenced before": {}, "installed before pod-reloader": {"a"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := using(t, "Deployment", len(before) > 0, before...)
			v1 := clone(t, w.stored)
			for n, content := range []string{"A", "B", "C"} {
				w.set(cm("c"), content)
				require.Nil(t, w.write(uses(fmt.Sprintf("image:%d", n+2), "a", "c")))
				w.quiesce()
				require.Nil(t, w.write(func(raw map[string]any) { undo(raw, v1) }))
				w.at(t, 2*n+2, "the release and its undo")
				assert.Equal(t, templateOf(v1), templateOf(w.stored), "the pods of the first version survive")
			}
		})
	}
}

// The undo of these kinds brings the template only. Its hash says that the pods that are left of the first version have another content.
func TestUndoUnderReloadersAnnotationsReplacesPodsOfAnotherContent(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"StatefulSet", "DaemonSet", "Rollout"} {
		for name, c := range map[string]struct {
			content string
			given   func(w *world)
			kept    bool
		}{
			"changed":                             {content: "B"},
			"changed, and another webhook comes":  {content: "B", given: func(w *world) { w.other = setOther }},
			"changed, under another key":          {content: "B", given: func(w *world) { w.rotate("2") }},
			"changed and back":                    {content: "A", kept: true},
			"changed and back, under another key": {content: "A", kept: true, given: func(w *world) { w.rotate("2") }},
			"the key of the hash is lost":         {content: "B", kept: true, given: func(w *world) { w.lose("2") }},
			"the state cannot be read":            {content: "B", kept: true, given: func(w *world) { w.unreadable = true }},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				w := using(t, kind, false, "a")
				v1 := clone(t, w.stored)
				require.Nil(t, w.write(uses("image:2", "a")))
				w.set(cm("a"), "B")
				w.at(t, 2, "a change while the release is stuck")
				if c.content != "B" {
					w.set(cm("a"), c.content)
					w.at(t, 3, "another one")
				}
				if c.given != nil {
					c.given(w)
				}
				before := w.restarts
				require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
				w.unreadable, w.other = false, nil
				w.at(t, before+1, "the undo")
				assert.Equal(t, c.kept, w.managedOf(v1)[Hash] == w.managed()[Hash])
				w.set(cm("a"), "C")
				w.at(t, before+2, "a change is still seen")
			})
		}
	}
}

func setOther(raw map[string]any) { annotate(raw, "other", "1") }
