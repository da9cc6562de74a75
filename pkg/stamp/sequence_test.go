package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// started returns a world with configmap/a, configmap/b and secret/a, and a stamped workload that tracks configmap/a and
// secret/a.
func started(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.set(cm("a"), "A")
	w.set(cm("b"), "A")
	w.set(secret("a"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("a", "a"))))
	w.quiesce()
	require.Zero(t, w.restarts)
	return w
}

// at returns a function that asserts how many restarts there were until now.
func (w *world) at(t *testing.T, restarts int, why string) {
	t.Helper()
	w.quiesce()
	assert.Equal(t, restarts, w.restarts, why)
}

func TestSequence01SecondWebhook(t *testing.T) {
	t.Parallel()
	keys := newWorld(t).keys
	for name, other := range map[string]func(map[string]any){
		"touches the metadata":    func(raw map[string]any) { annotate(raw, "other", "1") },
		"touches the template":    func(raw map[string]any) { annotate(raw, "other", "1", "spec", "template") },
		"removes the new hash":    func(raw map[string]any) { annotate(raw, keys.ConfigHash, "", "spec", "template") },
		"removes the new Record":  func(raw map[string]any) { annotate(raw, keys.ConfigRecord, "") },
		"removes the explanation": func(raw map[string]any) { annotate(raw, keys.LastReload, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.set(cm("a"), "B")
			w.other = other
			w.at(t, 1, "the second pass must not take the stamp back")
			last, err := lastOf(w)
			require.NoError(t, err)
			assert.Equal(t, "config-change", last.Cause, "the explanation of the first pass is kept")
		})
	}
}

func TestSecondPassKeepsVerifiedReload(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.revision = true
	w.set(cm("a"), "B")
	w.other = func(raw map[string]any) { annotate(raw, "other", "1", "spec", "template") }
	require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, w.hash()) }))
	last, err := lastOf(w)
	require.NoError(t, err)
	assert.Equal(t, w.hash(), last.Digest, "the digest that was given is recorded beside the hash")
	w.at(t, 1, "once")
}

func TestSequence02StoredPoke(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.away = true
	old := clone(t, w.stored)
	w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, w.hash()+"@1") })
	withDummy := clone(t, w.stored)
	w.write(setImage("image:2"))
	w.away = false
	w.set(cm("a"), "B")
	require.Nil(t, w.write(setImage("image:3")), "kubectl set image")
	assert.NotContains(t, w.managed(), Dummy)
	require.Nil(t, w.write(func(raw map[string]any) { undo(raw, withDummy) }), "kubectl rollout undo with the dummy of then")
	assert.NotContains(t, w.managed(), Dummy)
	require.Nil(t, w.write(func(raw map[string]any) { undo(raw, old) }))
	restarts := w.restarts
	w.at(t, restarts, "all is stamped already")
}

// undo does what kubectl rollout undo does: the template and the annotations of an earlier ReplicaSet come back.
func undo(raw, earlier map[string]any) {
	raw["spec"].(map[string]any)["template"] = earlier["spec"].(map[string]any)["template"]
	raw["metadata"].(map[string]any)["annotations"] = earlier["metadata"].(map[string]any)["annotations"]
}

func TestSequence03AnnotationsOfAnotherWorkload(t *testing.T) {
	t.Parallel()
	w := started(t)
	before := clone(t, w.stored)
	w.set(cm("a"), "B")
	w.at(t, 1, "a change")
	after := clone(t, w.stored)

	require.Nil(t, w.write(func(raw map[string]any) { undo(raw, before) }))
	assert.Contains(t, strings.Join(w.result.Warnings, " "), "rollout undo")
	w.at(t, 1, "rollout undo across a reload")

	w.setManaged(after, Dummy, "deadbeef@7")
	w.set(cm("a"), "C")
	require.Nil(t, w.create(after), "get -o yaml | create")
	assert.Equal(t, RuleCreate, w.result.Rule)
	assert.NotContains(t, w.managed(), Dummy)
	assert.NotContains(t, w.managed(), LastReload)
	w.at(t, 1, "a new workload has the current configuration")

	w.away = true
	require.Nil(t, w.create(before), "a restore while the webhook is away")
	w.away = false
	w.restarts = 0
	w.at(t, 1, "its Record belongs to its template, and the configuration is another one")
}

func TestSequence04ListsGrow(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.write(func(raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "b, a") })
	w.at(t, 1, "editing a list stamps at once")
	last, err := lastOf(w)
	require.NoError(t, err)
	require.Len(t, last.Changes, 1)
	assert.Equal(t, "listed", last.Changes[0].Type, "not created")
	w.write(func(raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "a,b,,b") })
	w.at(t, 1, "another order")
}

func TestOptInByOtherDialectRestartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(cm("b"), "A")
	w.create(w.manifest(nil))
	w.write(func(raw map[string]any) { annotate(raw, autoKey, "true") })
	assert.Equal(t, RuleAdopt, w.result.Rule)
	w.at(t, 0, "adopted")
	w.set(secret("a"), "A")
	w.at(t, 0, "a creation that does not trigger is adopted")
	w.set(secret("a"), "B")
	w.at(t, 1, "the next change counts")
}

func TestSequence05RequiredObjectComesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.manifest(w.lists("b", "")))
	w.at(t, 0, "absent")
	w.set(cm("b"), "A")
	w.at(t, 0, "pods wait for it and start by themselves")
	w.set(cm("b"), "B")
	w.at(t, 1, "now it is a change")
}

func TestSequence06RequiredObjectReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(cm("b"), "A")
	w.set(cm("a"), "A")
	w.create(w.manifest(w.lists("b,a", "")))
	w.remove(cm("b"))
	w.at(t, 0, "held")
	w.set(cm("a"), "B")
	w.at(t, 0, "held as well: pods could not start")
	w.set(cm("b"), "A")
	w.at(t, 1, "what was held back is due")
}

func TestSequence10OptOutAndIn(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.set(cm("a"), "B")
	w.at(t, 1, "a change")
	hash := w.managed()[Hash]
	w.write(func(raw map[string]any) {
		raw["metadata"].(map[string]any)["annotations"] = map[string]any{}
		delete(raw["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any), "annotations")
	})
	assert.Equal(t, RuleExcluded, w.result.Rule)
	assert.Equal(t, hash, w.managed()[Hash])
	w.put()
	w.at(t, 1, "opting out restarts nothing, however often")
	w.write(func(raw map[string]any) {
		annotate(raw, w.keys.ConfigMaps, "a")
		annotate(raw, w.keys.Secrets, "a")
	})
	w.at(t, 1, "nothing has changed meanwhile")
}

func TestOptInThroughTheOtherDialectAfterAChangeRestartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(cm("b"), "A")
	w.create(w.manifest(map[string]string{autoKey: "true"}))
	w.write(func(raw map[string]any) { annotate(raw, autoKey, "") })
	w.set(cm("b"), "B")
	w.write(func(raw map[string]any) { annotate(raw, autoKey, "true") })
	w.at(t, 0, "what was known before opting out counts for nothing")
	w.set(cm("b"), "C")
	w.at(t, 1, "the next change counts")
}

func TestSequence13FrozenLeader(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.away = true
	frozen := w.object()
	late := append(w.reader.Guard(frozen), w.reader.Operations(frozen, w.managed().Without(LastReload))...)
	w.set(cm("a"), "B")
	w.at(t, 1, "another one reloads")
	_, err := tryPatch(w.stored, late)
	require.Error(t, err, "what was computed from older annotations must not be written")
}

func TestSequence14Keys(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.rotate("2")
	w.at(t, 0, "rotation")
	w.set(cm("a"), "B")
	w.at(t, 1, "a change, recorded under the old key")
	w.lose("3")
	w.at(t, 1, "all keys lost")
	w.set(cm("a"), "C")
	w.at(t, 2, "adopted again, so a change is seen")
	w.lose("4")
	w.foreign[w.managed().known().Record.Key] = true
	w.at(t, 2, "a foreign key that was adopted once is left alone")
}

func TestSequence15BackAgain(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.set(cm("a"), "B")
	w.set(cm("a"), "A")
	w.at(t, 0, "A, B, A within a gate")
}

// A was stamped, B adopted without a restart, A came back: the pods that took B have to go, although the hash stays.
func TestAdoptedContentAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.reloadMissing = true
	w.create(w.manifest(w.lists("b", "")))
	hash := w.managed()[Hash]
	w.set(cm("b"), "B")
	w.at(t, 0, "pods wait for it: adopted")
	w.other = func(raw map[string]any) { annotate(raw, "other", "1") }
	w.remove(cm("b"))
	w.at(t, 1, "gone again, and nothing is held")
	assert.Equal(t, hash, w.managed()[Hash])
	assert.NotEmpty(t, w.managed()[Restart])
	w.other = nil
	w.put()
	w.at(t, 1, "a PUT does not take it off")
	w.set(cm("b"), "C")
	w.remove(cm("b"))
	w.at(t, 1, "there and back within a gate")
	restart := w.managed()[Restart]
	w.write(func(raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "a,b") })
	assert.NotEqual(t, hash, w.managed()[Hash])
	assert.Equal(t, restart, w.managed()[Restart], "it stays when the hash changes")
}

// Without config-restart, the first call of the webhook looks like a reload that needs no stamp.
func TestSecondPassRepeatsRestart(t *testing.T) {
	t.Parallel()
	keys := newWorld(t).keys
	for name, removed := range map[string][]string{
		"config-restart removed": {keys.ConfigRestart},
		"both removed":           {keys.ConfigRestart, keys.ConfigHash},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.reloadMissing = true
			w.create(w.manifest(w.lists("b", "")))
			w.set(cm("b"), "B")
			w.at(t, 0, "pods wait for it: adopted")
			w.other = func(raw map[string]any) {
				for _, key := range removed {
					annotate(raw, key, "", "spec", "template")
				}
			}
			w.remove(cm("b"))
			w.at(t, 1, "the restart is made")
			assert.NotEmpty(t, w.managed()[Restart])
		})
	}
}
