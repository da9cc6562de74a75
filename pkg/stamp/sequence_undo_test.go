package stamp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// kindNamed returns a built-in kind.
func kindNamed(t *testing.T, name string) workload.Kind {
	t.Helper()
	for _, kind := range workload.Builtin() {
		if kind.Kind == name {
			return kind
		}
	}
	rollout, err := workload.ParseKind("argoproj.io/v1alpha1/Rollout=spec.template")
	require.NoError(t, err)
	require.Equal(t, rollout.Kind, name, "there is no such kind")
	return rollout
}

// undoAs does what rollout undo does for the world's kind: that of a Deployment brings its annotations, too, that of the
// others the template only.
func (w *world) undoAs(raw, earlier map[string]any) {
	if w.kind.Kind == "Deployment" {
		undo(raw, earlier)
		return
	}
	raw["spec"].(map[string]any)["template"] = clone(w.t, earlier)["spec"].(map[string]any)["template"]
}

func TestSequence29RollbackOfTheFirstReleaseAfterInstalling(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout"} {
		for event, happen := range map[string]func(*world){
			"nothing":     func(*world) {},
			"label":       func(w *world) { w.set(cm("a"), "A") },
			"key rotated": func(w *world) { w.rotate("2") },
		} {
			for _, installed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, installed later %t", kind, event, installed), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					w.kind, w.away = kindNamed(t, kind), installed
					w.set(cm("a"), "A")
					require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
					w.away = false
					w.quiesce()
					v1 := clone(t, w.stored)
					require.Nil(t, w.write(setImage("image:2")))
					happen(w)
					w.quiesce()
					require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
					assert.Equal(t, templateOf(v1), templateOf(w.stored), "the pods of the first version survive")
					w.at(t, 2, "the release and its undo")
					w.set(cm("a"), "B")
					w.at(t, 3, "a change is still seen")
				})
			}
		}
	}
}

// The undo brings the explanation of the reload that it goes back to. It is no explanation of the undo.
func TestUndoThatIsDueHasAnExplanationOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{1, 3600} {
		w := started(t)
		w.set(cm("a"), "B")
		w.at(t, 1, "B")
		toB := clone(t, w.stored)
		w.set(cm("a"), "C")
		w.at(t, 2, "C")
		before, err := lastOf(w)
		require.NoError(t, err)
		generation := w.object().Generation()

		w.rv += seconds // the clock goes by it
		w.set(cm("a"), "B")
		now := w.inputs(nil).Now
		require.Nil(t, w.write(func(raw map[string]any) { undo(raw, toB) }))
		w.at(t, 3, "the undo")
		last, err := lastOf(w)
		require.NoError(t, err)
		assert.Equal(t, generation, last.Generation, "after %d s: it is about this write", seconds)
		assert.Equal(t, now, last.Time, "after %d s", seconds)
		require.NotEmpty(t, last.Before)
		assert.Equal(t, before.Hash, last.Before[0].Hash, "after %d s: the reload before it is known", seconds)
	}
}

// What the first pass has judged by the Record or the hash that an undo brings, the second one cannot judge again: its own Record is there,
// which may be the one of before the undo.
func TestSecondPassKeepsTheExplanationOfAnUndo(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		for _, restarted := range []bool{false, true} {
			for _, readable := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, config-restart %t, readable %t", kind, restarted, readable), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					w.kind = kindNamed(t, kind)
					w.set(cm("a"), "A")
					require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
					v1 := clone(t, w.stored)
					w.set(cm("a"), "B")
					w.at(t, 1, "B")
					require.Nil(t, w.write(setImage("image:2")))
					if restarted { // as where a content returns that the pods were stamped with
						w.away = true
						require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Restart, "1") }))
						w.away = false
					}
					before, restart := w.restarts, w.managed()[Restart]
					w.rv += 60 // the clock goes by it
					w.other = func(raw map[string]any) {
						w.unreadable = !readable
						annotate(raw, "other", "1")
					}
					require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
					require.Equal(t, !readable, w.result.ReadError != nil)
					w.unreadable = false
					assert.Equal(t, restart, w.managed()[Restart])
					w.at(t, before+1, "the undo, which starts pods with B")
					last, err := lastOf(w)
					require.NoError(t, err)
					assert.Equal(t, record.CauseRelease, last.Cause)
					require.NotEmpty(t, last.Changes)
					assert.Equal(t, record.Modified, last.Changes[0].Type)
					assert.Equal(t, w.inputs(nil).Now, last.Time, "it is that of the undo")
				})
			}
		}
	}
}

// The content changes and comes back under another key, so that the live hash is not that of the first template.
func TestSequence29UndoAcrossAKeyRotation(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.kind = kindNamed(t, kind)
			w.set(cm("a"), "A")
			require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
			v1 := clone(t, w.stored)
			require.Nil(t, w.write(setImage("image:2")))
			w.rotate("2")
			for n, content := range []string{"B", "A"} {
				w.set(cm("a"), content)
				w.at(t, n+2, "a change while the release is stuck")
			}
			require.NotEqual(t, managedBy(workload.Object{Kind: w.kind, Raw: v1}, w.keys)[Hash], w.managed()[Hash])
			require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
			assert.Equal(t, templateOf(v1), templateOf(w.stored), "the pods of the first version survive")
			w.at(t, 4, "the undo, and nothing more")
		})
	}
}

// The stuck release tracks less. The hash that the undo brings is over what is tracked then, under the older key: it proves that the pods
// of the first version have what is current.
func TestSequence29UndoAcrossAKeyRotationOfAReleaseThatTracksLess(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout"} {
		for name, rotated := range map[string]bool{"the same key": false, "a newer key": true} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				w := using(t, kind, false, "a", "c")
				v1 := clone(t, w.stored)
				require.Nil(t, w.write(uses("image:2", "a")))
				require.NotEqual(t, w.managedOf(v1)[Hash], w.managed()[Hash])
				if rotated {
					w.rotate("2")
				}
				w.at(t, 1, "the release")
				require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
				assert.Equal(t, templateOf(v1), templateOf(w.stored), "the pods of the first version survive")
				w.set(cm("c"), "B")
				w.at(t, 3, "a change is still seen")
			})
		}
	}
}

// helm upgrade --atomic goes back by a patch of what the two manifests have different: none of our annotations is in it.
func TestSequence29HelmGoesBack(t *testing.T) {
	t.Parallel()
	for name, installed := range map[string]bool{"never stamped": true, "stamped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.away = installed
			w.set(cm("a"), "A")
			require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
			w.away = false
			w.quiesce()
			v1 := clone(t, w.stored)
			require.Nil(t, w.write(setImage("image:2")))
			w.rotate("2")
			w.quiesce()
			require.Nil(t, w.write(setImage("image:1")))
			assert.Equal(t, templateOf(v1), templateOf(w.stored), "the pods of the first version survive")
			w.at(t, 2, "the release and its rollback")
		})
	}
}

func TestSequence30UndoWhilePodReloaderIsDown(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		for name, change := range map[string]bool{"nothing changed": false, "configuration changed": true} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.kind = kindNamed(t, kind)
				w.set(cm("a"), "A")
				require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
				v1 := clone(t, w.stored)
				w.set(cm("a"), "B")
				w.at(t, 1, "a change")
				w.away = true
				require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
				require.Equal(t, 2, w.restarts, "the pods of before the change are back")
				if !change {
					w.set(cm("a"), "A")
				}
				w.away = false
				if change {
					w.at(t, 3, "the hash says that they have another content than the live one")
				} else {
					w.at(t, 2, "they have the live content")
				}
			})
		}
	}
}

// An undo that brings the template only must not lose the Record of the template before while a custom resource is held: nothing else
// says what that resource was last, without which the hash cannot be compared. Once the digest key is lost, too, no change would count.
func TestSequence29UndoWhileACustomResourceIsHeld(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.kind = kindNamed(t, kind)
			w.set(cm("a"), "A")
			w.set(cm("b"), "P")
			require.Nil(t, w.create(w.manifest(w.lists("a,b", ""))))
			v1 := clone(t, w.stored)
			w.set(cm("a"), "B")
			require.Nil(t, w.write(setImage("image:2")))
			w.at(t, 1, "a release with a change")
			w.set(cm("a"), "A")
			w.held = map[reference.Ref]bool{cm("b"): true}
			require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
			require.Equal(t, 2, w.restarts, "the template of before the release is back")
			assert.Equal(t, templateOf(v1), templateOf(w.stored))

			known := w.managed().known()
			assert.Empty(t, known.Unknown([]reference.Ref{cm("a"), cm("b")}), "the Record is rebuilt, with what is held")
			w.set(cm("a"), "C")
			changed := policy.Assess(policy.Input{
				Intent: w.view().Intent, Known: known, Current: w.states([]reference.Ref{cm("a"), cm("b")}), Ring: w.ring,
			})
			assert.Equal(t, []policy.Change{{Ref: cm("a"), Type: policy.Modified}}, changed.Verdict.Changes, "a later change counts at once, and its cause is known")
		})
	}
}

// Where the key was rotated since, what a held custom resource was last is known under the newer key only, and the hash of the earlier
// template can be compared under the older one only. The template is replaced anyway: it gets the hash that can be compared.
func TestSequence29UndoAcrossAKeyRotationWhileACustomResourceIsHeld(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.kind = kindNamed(t, kind)
			refs := []reference.Ref{cm("a"), cm("b")}
			w.set(cm("a"), "A")
			w.set(cm("b"), "P")
			require.Nil(t, w.create(w.manifest(w.lists("a,b", ""))))
			v1 := clone(t, w.stored)
			w.rotate("2")
			w.set(cm("a"), "B")
			require.Nil(t, w.write(setImage("image:2")))
			w.at(t, 1, "a release with a change, stamped under the newer key")
			w.held = map[reference.Ref]bool{cm("b"): true}
			require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
			require.Equal(t, 2, w.restarts, "the undo restarts once")

			known := w.managed().known()
			assert.Empty(t, known.Unknown(refs), "the Record has what is held")
			assess := func() policy.Verdict {
				return policy.Assess(policy.Input{Intent: w.view().Intent, Known: known, Current: w.states(refs), Ring: w.ring}).Verdict
			}
			assert.Empty(t, assess().Changes, "the pods have started with the present configuration")
			w.set(cm("a"), "C")
			assert.Equal(t, []policy.Change{{Ref: cm("a"), Type: policy.Modified}}, assess().Changes, "a later change counts at once")
		})
	}
}

func TestSequence31PutThatLacksALaterWebhooksField(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ installed, held bool }{
		"stamped":                       {},
		"never stamped":                 {installed: true},
		"stamped, a reload is held":     {held: true},
		"never stamped, reload is held": {installed: true, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(cm("b"), "A")
			w.other = func(raw map[string]any) { annotate(raw, "injected", "1", "spec", "template") }
			w.away = tc.installed
			raw := w.manifest(w.lists("b", ""))
			if tc.installed {
				w.other(raw)
			}
			require.Nil(t, w.create(raw))
			w.away = false
			w.quiesce()
			before := w.managed()
			if tc.held {
				w.remove(cm("b"))
				w.quiesce()
			}
			for range 2 {
				require.Nil(t, w.store(w.manifest(w.lists("b", ""))))
				w.at(t, 0, "the other webhook adds its field again")
			}
			assert.Equal(t, before[Hash], w.managed()[Hash])
			w.set(cm("b"), "B")
			w.at(t, 1, "a change is still seen")
		})
	}
}
