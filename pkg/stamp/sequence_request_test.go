package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client's request for a reload that nothing tracks must not look like success.
func TestPurgedDummyWarns(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*world, map[string]any){
		"no list":  func(w *world, raw map[string]any) { w.optOut(raw) },
		"excluded": func(w *world, raw map[string]any) { w.ignore(raw) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			require.Nil(t, w.write(func(raw map[string]any) { prepare(w, raw) }))
			require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, "0123456789abcdef") }))
			assert.NotContains(t, w.managed(), Dummy)
			assert.Contains(t, strings.Join(w.result.Warnings, " "), "removed this reload request")
		})
	}
}

func TestLastReloadWrittenWhileOptedOutDoesNotComeBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ out, in func(*world, map[string]any) }{
		"opted out": {(*world).optOut, func(w *world, raw map[string]any) {
			annotate(raw, w.keys.ConfigMaps, "a")
			annotate(raw, w.keys.Secrets, "a")
		}},
		"excluded": {(*world).ignore, func(_ *world, raw map[string]any) { delete(raw["metadata"].(map[string]any), "labels") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			require.Nil(t, w.write(func(raw map[string]any) { tc.out(w, raw) }))
			byHand := `{"time":"2026-01-01T00:00:00Z","hash":"` + w.managed()[Hash] + `","generation":1,"cause":"config-change"}`
			require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, LastReload, byHand) }))
			assert.NotContains(t, w.managed(), LastReload, "nothing of ours explains a reload that was none")
			require.Nil(t, w.write(func(raw map[string]any) { tc.in(w, raw) }))
			last, ok := w.managed()[LastReload]
			assert.NotContains(t, last, "2026-01-01T00:00:00Z", "nor does it come back (%t)", ok)
		})
	}
}
