package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestCleanTakesAwayWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		strategy       annotation.ReloadStrategy
		away, metadata bool
		template       []string
		restarts       int
	}{
		"env-vars":                  {strategy: annotation.EnvVars, template: []string{"", variableB}, restarts: 2},
		"annotations":               {strategy: annotation.Annotations, template: []string{"", strategy.Annotation}, restarts: 2},
		"config-hash":               {strategy: annotation.ConfigHash, template: []string{""}, restarts: 2},
		"no webhook":                {strategy: annotation.EnvVars, away: true, template: []string{"", variableB}, restarts: 2},
		"nothing that restarts":     {strategy: annotation.EnvVars, metadata: true, template: []string{"", variableB}, restarts: 1},
		"the same under no webhook": {strategy: annotation.Annotations, metadata: true, away: true, template: []string{"", strategy.Annotation}, restarts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := under(t, c.strategy)
			manifest := w.stripped(w.stored)
			w.set(cm("b"), "B")
			w.quiesce()
			require.Nil(t, w.write(w.ignore))
			c.template[0] = w.keys.ConfigHash
			assert.Equal(t, Remains{OnTemplate: c.template, OnWorkload: []string{w.keys.ConfigRecord, w.keys.LastReload}}, w.reader.Remains(w.object()))
			w.away = c.away
			require.Nil(t, w.store(patch(t, w.stored, w.reader.Clean(w.object(), !c.metadata))))
			assert.Equal(t, c.away, w.managed()[Dummy] != "", "the webhook removes the request")
			w.away = false
			if c.away {
				require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, "") }))
			}
			left := w.reader.Remains(w.object())
			assert.Empty(t, left.OnWorkload)
			w.at(t, c.restarts, "the template, if that was asked for")
			if c.metadata {
				assert.Equal(t, c.template, left.OnTemplate)
				return
			}
			assert.Empty(t, left.OnTemplate)
			assert.Equal(t, templateOf(manifest), templateOf(w.stripped(w.stored)))
		})
	}
}

func TestOnlyAnExcludedWorkloadIsCleaned(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	w.set(cm("b"), "B")
	w.quiesce()
	before := w.managed()
	rejection := w.store(patch(t, w.stored, w.reader.Clean(w.object(), true)))
	require.NotNil(t, rejection, "it is no digest")
	assert.Equal(t, before, w.managed())
	require.Nil(t, w.write(w.ignore))
	require.Nil(t, w.put())
	assert.Equal(t, before, w.managed(), "a PUT that lacks all is no request")
}

// After a return to an earlier version, or a removal with one, workloads have Records of the newer version, or of a hand edit that looks
// like one. Nothing else removes them: the webhook keeps what it cannot read.
func TestCleanTakesAwayARecordOfANewerVersion(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.ConfigHash)
	w.away = true
	require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Record, "v2:of a newer version") }))
	w.away = false
	require.Nil(t, w.write(w.ignore))
	require.Nil(t, w.put())
	require.Equal(t, "v2:of a newer version", w.managed()[Record], "a manifest that lacks it does not remove it")
	require.Nil(t, w.store(patch(t, w.stored, w.reader.Clean(w.object(), true))))
	assert.True(t, w.reader.Remains(w.object()).Empty(), "%v", w.managed())
}

// It reloads nothing, so that no last-reload is missing. A user may fill the bytes that are left to the Deployment controller.
func TestCleanOfAWorkloadWithoutBytesLeftWarnsOfNothing(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.ConfigHash)
	w.set(cm("b"), "B")
	w.at(t, 1, "a change, so that there is a last reload")
	w.away = true
	require.Nil(t, w.write(func(raw map[string]any) {
		w.ignore(raw)
		annotate(raw, "big", strings.Repeat("x", maxOnWorkload))
	}))
	w.away = false
	require.Contains(t, w.managed(), LastReload)
	require.Nil(t, w.store(patch(t, w.stored, w.reader.Clean(w.object(), true))))
	assert.True(t, w.reader.Remains(w.object()).Empty(), "%v", w.managed())
	assert.Empty(t, w.result.Warnings)
}

func TestRemainsOfAJobAreThoseOfItsMetadata(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	w.set(cm("b"), "B")
	w.quiesce()
	o := w.object()
	o.Kind.CreateOnly = true
	assert.Empty(t, w.reader.Remains(o).OnTemplate, "its template cannot change")
	assert.Empty(t, w.reader.Remains(o).OnControlled)
	for _, op := range w.reader.Clean(o, true) {
		assert.NotContains(t, op.Path, "/spec/")
	}
	assert.True(t, w.reader.Remains(workload.Object{Kind: w.kind, Raw: w.manifest(nil)}).Empty(), "the workload has no annotations of ours")
}

// The controller of a workload writes the pod template, and may restore what is removed.
func TestRemainsOnAControlledTemplateAreReported(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	w.set(cm("b"), "B")
	w.quiesce()
	o := w.object()
	o.Raw["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"controller": true}}
	left := w.reader.Remains(o)
	assert.Empty(t, left.OnTemplate)
	assert.Equal(t, []string{w.keys.ConfigHash, variableB}, left.OnControlled)
	for _, op := range w.reader.Clean(o, true) {
		assert.NotContains(t, op.Path, "/spec/")
	}
}

// A Job that was created again, or nearly so, names the one that it replaces, or the manifest. The webhook does not manage these annotations.
func TestCleanRemovesWhatIsLeftOfRecreations(t *testing.T) {
	t.Parallel()
	w := under(t, annotation.EnvVars)
	keys := []string{w.keys.RecreatedFrom, w.keys.RecreationCanceled}
	require.Nil(t, w.write(func(raw map[string]any) {
		w.ignore(raw)
		for _, key := range keys {
			annotate(raw, key, "a-uid")
		}
	}))
	assert.Subset(t, w.reader.Remains(w.object()).OnWorkload, keys)
	require.Nil(t, w.store(patch(t, w.stored, w.reader.Clean(w.object(), false))))
	for _, key := range keys {
		assert.NotContains(t, w.object().Annotations(), key)
	}
	assert.Empty(t, w.reader.Remains(w.object()).OnWorkload)
}
