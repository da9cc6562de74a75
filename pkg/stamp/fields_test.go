package stamp

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// under returns a world in which a workload tracks configmap/b and secret/a, both of which its container reads.
func under(t *testing.T, s annotation.ReloadStrategy) *world {
	t.Helper()
	w := newWorld(t)
	w.reader.Strategy = s
	w.set(cm("b"), "A")
	w.set(secret("a"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("b", "a"))))
	w.quiesce()
	return w
}

// env returns the value of a variable of the stored template.
func (w *world) env(name string) string {
	value, _ := strategy.Read(w.object().Template()).Value(name)
	return value
}

func (w *world) source() strategy.Source {
	return strategy.ParseSource(strategy.Read(w.object().Template()).From)
}

const (
	variableB = "STAKATER_B_CONFIGMAP"
	variableA = "STAKATER_A_SECRET"
	// sha1B is what sha1sum prints for k=B.
	sha1B = "e7e1f7232d18439644535432c1529c5de34c6d3f"
)

func TestReloadSetsTheVariableOfWhatChanged(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	assert.Empty(t, w.managed()[Fields], "only a reload writes")
	w.set(cm("b"), "B")
	w.at(t, 1, "the change")
	assert.Equal(t, sha1B, w.env(variableB))
	assert.Empty(t, w.env(variableA), "it has not changed")
	w.set(secret("a"), "B")
	w.at(t, 2, "the change")
	newest, _ := w.ring.Newest()
	entry := w.state(secret("a")).Entries[newest.ID]
	assert.Equal(t, hex.EncodeToString(entry[:20]), w.env(variableA), "a Secret's is keyed")
	assert.Equal(t, sha1B, w.env(variableB), "and the other one stays")
	w.remove(secret("a"))
	w.at(t, 3, "the deletion")
	assert.Empty(t, w.env(variableA), "a deletion takes the variable away")
}

func TestReloadSaysWhatItWasReloadedFrom(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.Annotations)
	w.set(cm("b"), "B")
	w.at(t, 1, "the change")
	source := w.source()
	assert.NotZero(t, source.ObservedAt)
	source.ObservedAt = 0
	assert.Equal(t, strategy.NewSource(cm("b"), "test", sha1B, "c"), source)
	w.remove(cm("b"))
	w.quiesce()
	w.set(secret("a"), "B")
	w.quiesce()
	assert.Empty(t, w.env(variableB), "no variable")
}

func TestReloadSaysItsTimeWhereTheHashOfReloaderStays(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.Annotations)
	w.reloadMissing = true
	w.set(cm("b"), "")
	w.at(t, 1, "the last key is removed")
	before := w.source()
	w.remove(cm("b"))
	w.set(secret("a"), "A")
	w.at(t, 2, "the deletion, later")
	after := w.source()
	assert.Equal(t, before.Hash, after.Hash, "Reloader has the hash of the empty content for both")
	assert.Greater(t, after.ObservedAt, before.ObservedAt)
}

func TestReloadWithoutARecordNamesNoObjectThatHasNotChanged(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.Annotations)
	unrecorded := func() {
		w.away = true
		require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Record, "") }))
		w.away = false
	}
	unrecorded()
	w.set(cm("b"), "B")
	w.at(t, 1, "the change")
	assert.Empty(t, w.source(), "one of two objects")
	w.set(cm("b"), "C")
	w.at(t, 2, "the change")
	named := w.source()
	assert.True(t, named.Is(cm("b")), "the object that has changed, not %+v", named)
	unrecorded()
	w.set(secret("a"), "B")
	w.at(t, 3, "the change")
	assert.Equal(t, named, w.source(), "configmap/b is as it was then")
	unrecorded()
	w.set(cm("b"), "B")
	w.at(t, 4, "the change")
	assert.Equal(t, sha1B, w.source().Hash, "configmap/b is not")
}

func TestWritesThatForgetTheFieldsRestartNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []annotation.ReloadStrategy{annotation.EnvVars, annotation.Annotations} {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			w := under(t, s)
			w.set(cm("b"), "B")
			w.quiesce()
			before := clone(t, w.stored)
			for range 2 {
				require.Nil(t, w.put())
			}
			assert.Equal(t, templateOf(before), templateOf(w.stored), "a PUT")
			require.Nil(t, w.write(func(raw map[string]any) {
				raw["spec"].(map[string]any)["template"] = strategy.Without(raw["spec"].(map[string]any)["template"].(map[string]any))
			}))
			assert.Equal(t, templateOf(before), templateOf(w.stored), "a merge patch that replaces the containers, but not the annotations")
		})
	}
}

func TestEditedFieldsAreRestoredWithAWarning(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	w.set(cm("b"), "B")
	w.quiesce()
	before := clone(t, w.stored)
	require.Nil(t, w.write(setEnv(variableB, "by hand")))
	assert.Equal(t, templateOf(before), templateOf(w.stored))
	assert.Contains(t, strings.Join(w.result.Warnings, " "), variableB)
}

// setEnv sets a variable in the first container.
func setEnv(name, value string) func(map[string]any) {
	return func(raw map[string]any) {
		container := raw["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		entries, _ := container["env"].([]any)
		for _, entry := range entries {
			if entry.(map[string]any)["name"] == name {
				entry.(map[string]any)["value"] = value
				return
			}
		}
		container["env"] = append(entries, map[string]any{"name": name, "value": value})
	}
}

func TestFieldsComeBackWithTheHash(t *testing.T) {
	t.Parallel()
	for _, s := range []annotation.ReloadStrategy{annotation.EnvVars, annotation.Annotations} {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			w := under(t, s)
			first := clone(t, w.stored)
			w.set(cm("b"), "B")
			w.at(t, 1, "a change that the pods do not start with, say")
			second := clone(t, w.stored)
			w.set(cm("b"), "A")
			w.at(t, 2, "it is taken back")
			assert.Equal(t, templateOf(first), templateOf(w.stored), "the pods of the first ReplicaSet survive")
			w.set(cm("b"), "B")
			w.at(t, 3, "and forth")
			assert.Equal(t, templateOf(second), templateOf(w.stored))
		})
	}
}

func TestReleaseAndConfigurationAreRolledBackByPut(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	first := clone(t, w.stored)
	w.set(cm("b"), "B")
	raw := w.stripped(w.stored)
	setImage("image:2")(raw)
	require.Nil(t, w.store(raw))
	w.at(t, 1, "config and release in one rollout, which is stuck")
	assert.Equal(t, sha1B, w.env(variableB))
	w.set(cm("b"), "A")
	require.Nil(t, w.store(w.stripped(first)))
	w.at(t, 2, "both go back in one rollout")
	assert.Equal(t, templateOf(first), templateOf(w.stored), "the pods of the first ReplicaSet survive")
}

func TestVariableOfReloaderIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.away = true // not installed yet
	w.set(cm("b"), "A")
	raw := w.manifest(w.lists("b", ""))
	setEnv("X", "x")(raw)
	setEnv(variableB, strings.Repeat("ab", 32))(raw)
	setEnv("Y", "y")(raw)
	require.Nil(t, w.create(raw))
	w.away, w.reader.Strategy = false, annotation.EnvVars
	before := clone(t, w.stored)
	w.at(t, 0, "nothing is rewritten")
	assert.Equal(t, templateOf(before), templateOf(w.stored))
	require.Nil(t, w.put())
	w.at(t, 0, "nor lost")
	assert.Equal(t, templateOf(before), templateOf(w.stored))
	w.set(cm("b"), "B")
	w.at(t, 1, "the first change")
	assert.Equal(t, []strategy.Variable{{Container: "c", Index: 1, Name: variableB, Value: sha1B}}, w.managed().fields().Variables, "in its position")
}

func TestReloaderBesideSparesTheReload(t *testing.T) {
	t.Parallel()
	others := strings.Repeat("cd", 20)
	for name, c := range map[string]struct {
		write func(map[string]any)
		kept  bool
		why   string
	}{
		"its variable": {setEnv(variableB, others), true, "what changed is reloaded by it"},
		"its annotation": {func(raw map[string]any) {
			annotate(raw, strategy.Annotation, strategy.NewSource(cm("b"), "test", others, "c").String(), "spec", "template")
		}, true, "what changed is reloaded by it"},
		"the variable of another object": {setEnv(variableA, others), false, "that has not changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := under(t, annotation.EnvVars)
			w.set(cm("b"), "B")
			require.Nil(t, w.write(c.write))
			assert.Equal(t, c.kept, strings.Contains(w.managed()[Fields], others), c.why)
			w.at(t, 1, "once, whichever program is first")
			require.Nil(t, w.write(c.write))
			w.at(t, 1, "and no more")
		})
	}
}

// Stakater's Reloader may handle what this program leaves alone, or does not know yet: its restart is the only one.
func TestReloaderBesideRestartsWhatIsNotHandled(t *testing.T) {
	t.Parallel()
	others := strings.Repeat("cd", 20)
	for name, before := range map[string]func(w *world){
		"excluded by a label": func(w *world) { w.write(func(raw map[string]any) { w.ignore(raw) }) },
		"without annotations": func(w *world) { w.write(w.optOut) },
		"nothing is known of it": func(w *world) {
			w.away = true
			w.write(w.forget)
			w.away = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := under(t, annotation.EnvVars)
			before(w)
			w.restarts = 0
			w.set(cm("b"), "B")
			require.Nil(t, w.write(setEnv(variableB, others)))
			assert.Contains(t, w.managed()[Fields], others)
			w.at(t, 1, "by Reloader")
			require.Nil(t, w.write(func(raw map[string]any) { delete(raw["metadata"].(map[string]any), "labels") }))
			w.at(t, 1, "the pods have what is there: nothing is due when it is handled")
			require.Nil(t, w.put())
			w.at(t, 1, "a manifest that lacks the variable does not remove it")
		})
	}
}

// A rollback brings what an earlier reload has written, and its hash. Of an excluded workload neither is taken: the template is the same.
func TestRollbackToAnEarlierReloadOfAnExcludedWorkloadRestartsNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []annotation.ReloadStrategy{annotation.EnvVars, annotation.Annotations} {
		w := under(t, s)
		w.set(cm("b"), "B")
		w.at(t, 1, "the first reload")
		earlier := clone(t, w.stored)
		w.set(cm("b"), "C")
		w.at(t, 2, "the second one")
		require.Nil(t, w.write(w.ignore))
		before := w.managed()
		require.Nil(t, w.write(func(raw map[string]any) { undo(raw, earlier) }))
		assert.True(t, w.managed().sameStamp(before), "the rollback does not change the stamp of an excluded workload")
		w.at(t, 2, "the pods have the present configuration")
	}
}

// Under the strategy annotations there is one annotation for both.
func TestAnnotationOfReloaderBesideIsKept(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.Annotations)
	w.set(cm("b"), "B")
	others := strategy.NewSource(cm("b"), "test", strings.Repeat("cd", 20), "c")
	require.Nil(t, w.write(func(raw map[string]any) {
		annotate(raw, strategy.Annotation, others.String(), "spec", "template")
	}))
	w.at(t, 1, "once")
	assert.Equal(t, others, w.source())
}

func TestFieldsAreNoChangeOfTheTemplateUnderAStrategy(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	w.set(cm("b"), "B")
	w.quiesce()
	stored, without := w.object(), w.stripped(w.stored)
	for s, changed := range map[annotation.ReloadStrategy]bool{
		annotation.EnvVars: false, annotation.Annotations: false, annotation.ConfigHash: true,
	} {
		w.reader.Strategy = s
		req, _ := w.reader.NewWrite(&stored, workload.Object{Kind: w.kind, Raw: without})
		assert.Equal(t, changed, req.TemplateChanged, s)
	}
}

func TestFieldsKeepTheirPositionsBesideAnotherWebhook(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"that adds at the beginning": true, "that adds at the end": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.reader.Strategy = annotation.EnvVars
			w.set(cm("b"), "A")
			w.other = func(raw map[string]any) { inject(raw, first) }
			raw := w.manifest(w.lists("b", ""))
			setEnv("X", "x")(raw)
			require.Nil(t, w.create(clone(t, raw)))
			w.set(cm("b"), "B")
			w.at(t, 1, "the change")
			before := templateOf(w.stored)
			for range 3 {
				require.Nil(t, w.store(raw))
				w.at(t, 1, "a PUT of the manifest")
				assert.Equal(t, before, templateOf(w.stored))
			}
			if !first {
				return // in a release the variable comes before what the other webhook adds later: a known limit
			}
			setImage("image:2")(raw)
			require.Nil(t, w.store(raw))
			w.at(t, 2, "a release")
			setImage("image:1")(raw)
			require.Nil(t, w.store(raw))
			w.at(t, 3, "and back")
			assert.Equal(t, before, templateOf(w.stored), "the ReplicaSet is found again")
		})
	}
}

// inject adds a variable to the first container, where it lacks that.
func inject(raw map[string]any, first bool) {
	container := raw["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	entries, _ := container["env"].([]any)
	added := map[string]any{"name": "INJECTED", "value": "i"}
	for _, entry := range entries {
		if entry.(map[string]any)["name"] == "INJECTED" {
			return
		}
	}
	if first {
		container["env"] = append([]any{added}, entries...)
	} else {
		container["env"] = append(entries, added)
	}
}

func TestNoVariableIsAddedWhereOnlyTheHashWasKnown(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	w.set(cm("b"), "B")
	w.quiesce()
	w.away = true
	w.write(func(raw map[string]any) { w.setManaged(raw, Record, "") })
	w.away = false
	w.set(cm("b"), "C")
	w.set(secret("a"), "C")
	w.at(t, 2, "something has changed")
	assert.NotEqual(t, sha1B, w.env(variableB), "it is there, and not current")
	assert.Empty(t, w.env(variableA))
}
