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

// rollbacks are the ways in which a release is rolled back: by rollout undo, by a patch of what differs in two manifests, as Helm's, and by
// a PUT of the first manifest.
func rollbacks() map[string]func(w *world, v1 map[string]any, names ...string) {
	return map[string]func(w *world, v1 map[string]any, names ...string){
		"rollout undo": func(w *world, v1 map[string]any, _ ...string) {
			require.Nil(w.t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
		},
		"helm rollback": func(w *world, _ map[string]any, names ...string) {
			require.Nil(w.t, w.write(uses("image:1", names...)))
		},
		"PUT": func(w *world, v1 map[string]any, _ ...string) { require.Nil(w.t, w.store(w.stripped(v1))) },
	}
}

// What stuck releases drop may change before they are rolled back: the pods that are left of the first version have what was there before.
func TestRollbackOfReleasesThatTrackLessReplacesPodsOfAnotherContent(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout"} {
		for way, rollBack := range rollbacks() {
			for name, names := range map[string][]string{"one of two": {"a"}, "all": {}} {
				for _, releases := range []int{1, 2} {
					t.Run(fmt.Sprintf("%s, %s, %s, releases: %d", kind, way, name, releases), func(t *testing.T) {
						t.Parallel()
						w := using(t, kind, true, "a", "c")
						v1 := clone(t, w.stored)
						for n := range releases {
							require.Nil(t, w.write(uses(fmt.Sprintf("image:%d", n+2), names...)))
						}
						w.set(cm("c"), "B")
						w.at(t, releases, "a change of what is not tracked")
						rollBack(w, v1, "a", "c")
						w.at(t, releases+1, "the rollback")
						assert.NotEqual(t, templateOf(v1), templateOf(w.stored))
					})
				}
			}
		}
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
