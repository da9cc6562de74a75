package stamp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// addVolume is a mutating webhook of others that mounts the Secret x, as injectors of sidecars do.
func addVolume(raw map[string]any) {
	volume := map[string]any{"name": "x", "secret": map[string]any{"secretName": "x"}}
	templateOf(raw).(map[string]any)["spec"].(map[string]any)["volumes"] = []any{volume}
}

// withLaterVolume returns a workload whose reference to the Secret x comes from a webhook that is called after ours, and its manifest.
func withLaterVolume(t *testing.T, kind string) (w *world, manifest map[string]any) {
	t.Helper()
	w = newWorld(t)
	w.kind = kindNamed(t, kind)
	w.set(cm("b"), "A")
	w.set(secret("a"), "A")
	w.set(secret("x"), "A")
	w.other = addVolume
	manifest = w.manifest(map[string]string{autoKey: "true"})
	require.Nil(t, w.create(manifest))
	w.quiesce()
	require.Contains(t, w.liveRecord(false).Refs(), secret("x"))
	return w, manifest
}

// The first pass sees a manifest that drops the reference, and stamps another hash. The second one has the reference again.
func TestPutThatLacksALaterWebhooksReferenceKeepsTheHash(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "Rollout"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w, manifest := withLaterVolume(t, kind)
			v1, hash := templateOf(clone(t, w.stored)), w.managed()[Hash]

			require.Nil(t, w.store(manifest))
			assert.Equal(t, v1, templateOf(w.stored), "nothing has changed")
			assert.Empty(t, w.result.Warnings)
			setImage("image:2")(manifest)
			require.Nil(t, w.store(manifest))
			w.quiesce()
			assert.Equal(t, hash, w.managed()[Hash], "the release changes no configuration and no reference")
			assert.Equal(t, w.liveRecord(false).String(), w.managed()[Record])
			setImage("image:1")(manifest)
			require.Nil(t, w.store(manifest))
			w.quiesce()
			assert.Equal(t, v1, templateOf(w.stored), "the pods of the first template survive")

			w.set(secret("x"), "B")
			w.at(t, 3, "a change is still seen")
			setImage("image:3")(manifest)
			w.set(cm("b"), "B")
			require.Nil(t, w.store(manifest))
			w.at(t, 4, "a change with a release restarts once")
			assert.Equal(t, w.hash(), w.managed()[Hash])
		})
	}
}

// The first pass sees another template than the stored one, and stamps it or forgets its Record. No user has edited that.
func TestPutThatLacksALaterWebhooksFieldDoesNotWarn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotations map[string]string
		other       func(raw map[string]any)
		given       func(w *world)
	}{
		"a reference": {annotations: map[string]string{autoKey: "true"}, other: addVolume},
		"the annotation that opts in": {
			other: func(raw map[string]any) { annotate(raw, autoKey, "true") },
		},
		"the annotation that opts in, and a label on the template": {
			other: func(raw map[string]any) {
				annotate(raw, autoKey, "true")
				annotate(raw, "injected", "1", "spec", "template")
			},
		},
		"a field, while the revision digest has moved": {
			annotations: newWorld(t).lists("b", ""),
			other:       func(raw map[string]any) { annotate(raw, "injected", "1", "spec", "template") },
			given: func(w *world) {
				w.revision = true
				require.Nil(t, w.create(w.stored))
				w.set(cm("b"), "A")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(cm("b"), "A")
			w.set(secret("x"), "A")
			w.other = c.other
			require.Nil(t, w.create(w.manifest(c.annotations)))
			w.quiesce()
			if c.given != nil {
				c.given(w)
			}
			before := w.managed()
			require.Nil(t, w.store(w.manifest(c.annotations)))
			assert.Empty(t, w.result.Warnings)
			assert.Equal(t, before, w.managed())
		})
	}
}

// The first pass sees a workload that asks for nothing, and writes the empty Record.
func TestReleaseThatLacksALaterWebhooksOptInKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "Rollout"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.kind = kindNamed(t, kind)
			w.set(cm("b"), "A")
			w.other = func(raw map[string]any) { annotate(raw, autoKey, "true") }
			manifest := w.manifest(nil)
			require.Nil(t, w.create(manifest))
			w.quiesce()
			v1 := clone(t, w.stored)
			w.set(cm("b"), "B")
			setImage("image:2")(manifest)
			require.Nil(t, w.store(manifest))
			w.quiesce()
			require.Nil(t, w.write(func(raw map[string]any) { w.undoAs(raw, v1) }))
			w.quiesce()
			assert.NotEqual(t, templateOf(v1), templateOf(w.stored), "its pods run A")
		})
	}
}
