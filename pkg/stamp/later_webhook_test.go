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
