package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// Where no webhook restores them, managed annotations that were written by hand reach the loop. It comes to rest, restarts nothing for
// what says nothing about the pods, and sees the next change.
func TestHandwrittenAnnotationsWithoutAWebhook(t *testing.T) {
	t.Parallel()
	const entry = "0123456789abcdef"
	for name, tc := range map[string]struct {
		key   Key
		value string
		// restarts are those for the edit, blind says that a change is not seen after it.
		restarts int
		blind    bool
	}{
		"no Record":                 {key: Record},
		"Record of noise":           {key: Record, value: "\x00\x1b"},
		"Record of a wrong base64":  {key: Record, value: "v1:HASH:KEY:*A" + strings.Repeat("=", 23)},
		"compact Record of others":  {key: Record, value: "v1:HASH:KEY:*A" + strings.Repeat("A", 16) + "AAAAAAA"},
		"Record of another key":     {key: Record, value: "v1:HASH:00000000:configmap/a=" + entry + ",secret/a=" + entry},
		"Record of another hash":    {key: Record, value: "v1:abc:KEY:configmap/a=" + entry},
		"Record of no hash":         {key: Record, value: "v1:-:KEY:configmap/a=" + entry},
		"Record of other objects":   {key: Record, value: "v1:HASH:KEY:configmap/x=" + entry},
		"Record of nothing":         {key: Record, value: "v1:HASH::"},
		"huge Record":               {key: Record, value: "v1:HASH:KEY:" + strings.Repeat("secret/a=-,", 20_000)},
		"Record of other entries":   {key: Record, value: "v1:HASH:KEY:configmap/a=" + entry + ",secret/a=-", restarts: 1},
		"Record of a newer version": {key: Record, value: "v2:", blind: true},
		"no last reload":            {key: LastReload},
		"last reload of noise":      {key: LastReload, value: "[[]]"},
		"last reload in the future": {key: LastReload, value: `{"time":"9999-12-31T23:59:59Z","hash":"HASH","cause":"release","generation":-1}`},
		"huge last reload":          {key: LastReload, value: strings.Repeat("9", 200<<10)},
		"request of noise":          {key: Dummy, value: "\x00"},
		"request for a generation":  {key: Dummy, value: "live@9223372036854775807"},
		"huge request":              {key: Dummy, value: strings.Repeat("a", 100<<10)},
		"restart":                   {key: Restart, value: "-1", restarts: 1},
		"hash of noise":             {key: Hash, value: "\x00", restarts: 1},
		"hash of another key":       {key: Hash, value: "00000000" + strings.Repeat("0", 56), restarts: 1},
		"hash of another content":   {key: Hash, value: "KEY" + strings.Repeat("0", 56), restarts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.set(cm("a"), "B")
			w.at(t, 1, "so that all managed annotations are there")
			rec, err := record.Parse(w.managed()[Record])
			require.NoError(t, err)
			w.away = true
			value := strings.NewReplacer("HASH", w.managed()[Hash], "KEY", string(rec.Key)).Replace(tc.value)
			require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, tc.key, value) }))
			w.at(t, 1+tc.restarts, "the edit")
			w.set(cm("a"), "C")
			if tc.blind {
				w.at(t, 1+tc.restarts, "it is reported instead")
				return
			}
			w.at(t, 2+tc.restarts, "the next change restarts the pods once")
			rec, err = record.Parse(w.managed()[Record])
			require.NoError(t, err, "it has a valid Record again")
			assert.True(t, rec.BelongsTo(w.managed()[Hash]), "the Record belongs to the present template")
		})
	}
}

// handwrittenHashes are texts that a release may bring as the config-hash of its template: it stays, as no other write replaces it.
func handwrittenHashes() map[string]string {
	return map[string]string{
		"a word": "mine", "words": "my hash", "none": "-", "no ASCII": "größe", "513 bytes": strings.Repeat("a", 513), "control characters": "\x00",
	}
}

// A reload that replaces a hash written by hand is explained as any other: without that it has no Event, and
// the refractory period does not count it.
func TestReloadOfATemplateWithAHandwrittenHashIsExplained(t *testing.T) {
	t.Parallel()
	for _, strategy := range []annotation.ReloadStrategy{annotation.ConfigHash, annotation.EnvVars, annotation.Annotations} {
		for name, hash := range handwrittenHashes() {
			t.Run(string(strategy)+", "+name, func(t *testing.T) {
				t.Parallel()
				w := under(t, strategy)
				require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Hash, hash); setImage("image:2")(raw) }))
				w.at(t, 1, "the release")
				require.Equal(t, hash, w.managed()[Hash])
				for n, content := range []string{"B", "C"} {
					w.set(cm("b"), content)
					w.at(t, 2+n, "the change")
					last, explained := w.managed().LastReload(w.inputs(nil).Now)
					require.True(t, explained, w.managed()[LastReload])
					assert.Equal(t, []record.Change{{Ref: "configmap/b", Type: record.Modified}}, last.Changes)
					assert.Len(t, last.Before, n)
				}
			})
		}
	}
}

// The loop restarts the pods of an Argo Rollout, whose template keeps a hash that was written by hand. Without its Record and its
// explanation the restart would be repeated without end.
func TestRestartBesideAHandwrittenHashIsRecorded(t *testing.T) {
	t.Parallel()
	for name, hash := range handwrittenHashes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rollout(t)
			w.quiesce()
			require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Hash, hash); setImage("image:2")(raw) }))
			w.quiesce()
			require.Equal(t, hash, w.managed()[Hash])
			w.set(cm("a"), "C")
			w.restartNow()
			assert.Equal(t, hash, w.managed()[Hash])
			last, explained := w.managed().LastReload(w.inputs(nil).Now)
			require.True(t, explained, "last-reload is readable")
			assert.Equal(t, []record.Change{{Ref: "configmap/a", Type: record.Modified}}, last.Changes)
			assert.Equal(t, policy.Nothing, w.verdict().Action, "it is recorded")

			require.Nil(t, w.write(func(raw map[string]any) { delete(raw["spec"].(map[string]any), "restartAt") }))
			_, explained = w.managed().LastReload(w.inputs(nil).Now)
			assert.True(t, explained, "the end of the restart")
			assert.Equal(t, w.hash(), w.managed()[Hash])
		})
	}
}
