package webhook_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// deployment is a workload as a test needs it.
type deployment struct {
	onWorkload, onTemplate map[string]string
	image                  string
	replicas               int
	// generation is any JSON.
	generation string
}

func (d deployment) with(change func(*deployment)) deployment {
	d.onWorkload, d.onTemplate = maps.Clone(d.onWorkload), maps.Clone(d.onTemplate)
	change(&d)
	return d
}

func (d deployment) raw(t testing.TB) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "cart", "namespace": "shop", "annotations": d.onWorkload, "generation": json.RawMessage(d.generation),
		},
		"spec": map[string]any{"replicas": d.replicas, "template": map[string]any{
			"metadata": map[string]any{"annotations": d.onTemplate}, "image": d.image,
		}},
	})
	require.NoError(t, err)
	return raw
}

// after returns the workload that an answer leaves, which must be a harmless patch.
func (d deployment) after(t testing.TB, body []byte, response *admissionv1.AdmissionResponse) deployment {
	t.Helper()
	require.True(t, response.Allowed, "the write is valid")
	requireHarmless(t, body, response)
	raw := d.raw(t)
	if len(response.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(response.Patch)
		require.NoError(t, err)
		raw, err = patch.Apply(raw)
		require.NoError(t, err)
	}
	var stored struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &stored))
	d.onWorkload, d.onTemplate = stored.Metadata.Annotations, stored.Spec.Template.Metadata.Annotations
	return d
}

func updating(t testing.TB, old, current deployment) []byte {
	t.Helper()
	return []byte(review(fmt.Sprintf(`"operation":"UPDATE","object":%s,"oldObject":%s`, current.raw(t), old.raw(t))))
}

// stamped returns a workload as the handler stamps it at its creation.
func stamped(t testing.TB, s setup) deployment {
	t.Helper()
	d := deployment{
		onWorkload: map[string]string{annotation.DefaultKeys().ConfigMaps: "app", annotation.DefaultKeys().Secrets: "db"},
		onTemplate: map[string]string{}, image: "cart:1", replicas: 1, generation: "3",
	}
	body := []byte(review(fmt.Sprintf(`"operation":"CREATE","object":%s`, d.raw(t))))
	d = d.after(t, body, responseOf(t, post(s.handler, body)))
	require.Contains(t, d.onWorkload, annotation.DefaultKeys().ConfigRecord)
	require.Contains(t, d.onTemplate, annotation.DefaultKeys().ConfigHash)
	return d
}

// A request for a reload with an impossible generation was made for another one: it is dropped with a warning. One
// with a wrong digest is a conflict. Neither is ever stored.
func TestImpossibleRequestsForAReload(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		dummy    string
		stale    bool
		conflict bool
	}{
		"of this generation":      {dummy: "live@3"},
		"negative":                {dummy: "live@-1", stale: true},
		"zero":                    {dummy: "live@0", stale: true},
		"beyond 64 bits":          {dummy: "live@99999999999999999999", stale: true},
		"largest":                 {dummy: "live@9223372036854775807", stale: true},
		"huge":                    {dummy: "live@" + strings.Repeat("9", 40<<10), stale: true},
		"leading zero":            {dummy: "live@03", stale: true},
		"plus":                    {dummy: "live@+3", stale: true},
		"white space":             {dummy: "live@3 ", stale: true},
		"hex":                     {dummy: "live@0x3", stale: true},
		"missing":                 {dummy: "live@", stale: true},
		"twice":                   {dummy: "live@3@3", stale: true},
		"no digest, a generation": {dummy: "@3", conflict: true},
		"no digest":               {dummy: "@", stale: true},
		"unbound":                 {dummy: "live", conflict: true},
		"empty":                   {dummy: "", conflict: true},
		"control characters":      {dummy: "\x00\x1b[31m", conflict: true},
		"40 KiB":                  {dummy: strings.Repeat("a", 40<<10), conflict: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHandler(t, newWorld(t), nil, logr.Discard())
			old := stamped(t, s)
			asking := old.with(func(d *deployment) { d.onWorkload[annotation.DefaultKeys().ConfigHash] = tt.dummy })
			body := updating(t, old, asking)
			response := responseOf(t, post(s.handler, body))
			if tt.conflict {
				require.False(t, response.Allowed, "the client has to read the workload again")
				assert.EqualValues(t, http.StatusConflict, response.Result.Code)
				assert.Contains(t, response.Result.Message, "read it again and retry")
				assert.Less(t, len(response.Result.Message), 1024)
				return
			}
			assert.Equal(t, old, asking.after(t, body, response), "it is not stored, and nothing else changes")
			if tt.stale {
				assert.Contains(t, strings.Join(response.Warnings, "\n"), "stale reload request")
			}
		})
	}
}

// An impossible generation of the object itself is no generation, and never a panic.
func TestImpossibleGenerations(t *testing.T) {
	t.Parallel()
	for _, generation := range []string{"null", "-1", `"3"`, "1e30", "99999999999999999999", "3.5", "{}", "[]", "true"} {
		s := newHandler(t, newWorld(t), nil, logr.Discard())
		old := stamped(t, s).with(func(d *deployment) { d.generation = generation })
		asking := old.with(func(d *deployment) { d.onWorkload[annotation.DefaultKeys().ConfigHash] = "live@3" })
		body := updating(t, old, asking)
		stored := asking.after(t, body, responseOf(t, post(s.handler, body)))
		assert.Equal(t, old, stored, "generation %s", generation)
	}
}

// handwriting is a value of a managed annotation that pod-reloader does not write.
type handwriting struct {
	key        string
	onTemplate bool
	value      string
}

func (w handwriting) on(d *deployment) {
	if w.onTemplate {
		d.onTemplate[w.key] = w.value
	} else {
		d.onWorkload[w.key] = w.value
	}
}

// handwritings are wrong in each part of each managed annotation.
func handwritings(t testing.TB, d deployment) map[string]handwriting {
	t.Helper()
	keys := annotation.DefaultKeys()
	hash := d.onTemplate[keys.ConfigHash]
	rec, err := record.Parse(d.onWorkload[keys.ConfigRecord])
	require.NoError(t, err)
	const entry = "0123456789abcdef"
	all := map[string]handwriting{}
	for name, text := range map[string]string{
		"empty": "", "noise": "\x00\x1b", "huge": "v" + strings.Repeat("1", 40<<10), "old version": "v0:HASH:KEY:configmap/app=-",
		"nothing else": "v1", "no items": "v1:HASH:KEY", "empty key": "v1:HASH::configmap/app=-", "nothing known": "v1:HASH::",
		"hash of no hash": "v1:-:KEY:configmap/app=-", "other hash": "v1:abc:KEY:configmap/app=0123456789abcdef@1", "hash": "v1:a-b:KEY:configmap/app=-",
		"huge hash": "v1:" + strings.Repeat("a", 26<<10) + "::", "key id": "v1:HASH:1C9E04AB:configmap/app=-", "lost key": "v1:HASH:00000000:configmap/app=" + entry,
		"kind": "v1:HASH:KEY:widget/app=-", "name": "v1:HASH:KEY:configmap/..=-", "other objects": "v1:HASH:KEY:secret/x=" + entry,
		"entry": "v1:HASH:KEY:configmap/app=xyz", "other entries": "v1:HASH:KEY:configmap/app=" + entry + ",secret/db=" + entry,
		"resourceVersion": "v1:HASH:KEY:configmap/app=" + entry + "@-1", "twice": "v1:HASH:KEY:configmap/app=-,configmap/app=-",
		"order": "v1:HASH:KEY:secret/db=" + entry + ",configmap/app=" + entry, "too many": "v1:HASH:KEY:" + strings.Repeat("secret/a=-,", 20_000),
		"compact salt": "v1:HASH:KEY:*!" + strings.Repeat("A", 23), "compact, twice": "v1:HASH:KEY:*A" + strings.Repeat("A", 46),
		"compact digits": "v1:HASH:KEY:*A" + strings.Repeat("=", 23), "compact, cut off": "v1:HASH:KEY:*A" + strings.Repeat("A", 22),
		"compact, other objects": "v1:HASH:KEY:*A" + strings.Repeat("A", 16) + "AAAAAAA",
	} {
		text = strings.NewReplacer("HASH", hash, "KEY", string(rec.Key)).Replace(text)
		all["Record: "+name] = handwriting{key: keys.ConfigRecord, value: text}
	}
	for name, text := range map[string]string{
		"empty": "", "noise": "\x00\x1b", "short": hash[:63], "long": hash + "0", "capitals": strings.ToUpper(hash), "other": strings.Repeat("0", 64),
		"other key": "00000000" + hash[8:], "huge": strings.Repeat("a", 40<<10), "a request": "live@3",
		"two words": "my hash", "none": "-",
	} {
		all["hash: "+name] = handwriting{key: keys.ConfigHash, onTemplate: true, value: text}
	}
	for name, text := range map[string]string{"empty": "", "noise": "\x00", "negative": "-1", "huge": strings.Repeat("9", 40<<10)} {
		all["restart: "+name] = handwriting{key: keys.ConfigRestart, onTemplate: true, value: text}
	}
	for name, text := range map[string]string{
		"empty": "", "null": "null", "number": "7", "list": "[[]]", "deep": strings.Repeat(`{"before":[`, 10_000), "huge": `{"time":"` + strings.Repeat(" ", 40<<10) + `"}`,
		"far future": `{"time":"9999-12-31T23:59:59Z","hash":"HASH","cause":"release"}`, "far past": `{"time":"0001-01-01T00:00:00Z","hash":"HASH","cause":"release"}`,
		"no such time": `{"time":"2026-02-30T25:61:61Z","hash":"HASH"}`, "huge numbers": `{"time":"2026-01-01T00:00:00Z","hash":"HASH","generation":1e400,"more":1e400}`,
		"negative numbers": `{"time":"2026-01-01T00:00:00Z","hash":"HASH","generation":-9223372036854775808,"more":-1}`,
		"many changes":     `{"time":"2026-01-01T00:00:00Z","hash":"HASH","changes":[` + strings.Repeat(`{"ref":"a/b","type":"c"},`, 8_000) + `{"ref":"a/b","type":"c"}]}`,
	} {
		all["last reload: "+name] = handwriting{key: keys.LastReload, value: strings.ReplaceAll(text, "HASH", hash)}
	}
	return all
}

func TestHandwrittenManagedAnnotationsAreRestored(t *testing.T) {
	t.Parallel()
	s := newHandler(t, newWorld(t), nil, logr.Discard())
	old := stamped(t, s)
	for name, written := range handwritings(t, old) {
		edited := old.with(written.on)
		body := updating(t, old, edited)
		response := responseOf(t, post(s.handler, body))
		assert.Equal(t, old, edited.after(t, body, response), name)
		for _, warning := range response.Warnings {
			assert.Less(t, len(warning), 1024, name)
		}
	}
	assert.Zero(t, decisions(t, s, "none", "panicked"))
}

// What was written into a managed annotation while the webhook was away restarts nothing by itself.
// The next write of the workload that needs the Record leaves a valid one, and a release passes. A hash that may be under a lost key is left
// to the loop, unless the pods of a release start beside it.
func TestStoredHandwrittenAnnotationsRestartNothing(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	for name, release := range map[string]bool{"Scale": false, "Release": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHandler(t, newWorld(t), nil, logr.Discard())
			good := stamped(t, s)
			for name, written := range handwritings(t, good) {
				old := good.with(written.on)
				edited := old.with(func(d *deployment) {
					d.replicas = 2
					if release {
						d.image = "cart:2"
					}
				})
				body := updating(t, old, edited)
				stored := edited.after(t, body, responseOf(t, post(s.handler, body)))
				if !release {
					assert.Equal(t, old.onTemplate, stored.onTemplate, name)
				}
				rec, err := record.Parse(stored.onWorkload[keys.ConfigRecord])
				if assert.NoError(t, err, name) {
					left := !release && (name == "hash: other" || name == "hash: other key")
					assert.Equal(t, !left, rec.BelongsTo(stored.onTemplate[keys.ConfigHash]), name)
				}
			}
			assert.Zero(t, decisions(t, s, "none", "panicked"))
		})
	}
}

// A Record of a newer version is neither judged nor replaced.
func TestHandwrittenNewerRecordStaysWhereItIsStored(t *testing.T) {
	t.Parallel()
	s := newHandler(t, newWorld(t), nil, logr.Discard())
	good := stamped(t, s)
	for _, text := range []string{"v2:", "v999999:x", "v2:" + strings.Repeat("x", 40<<10)} {
		newer := func(d *deployment) { d.onWorkload[annotation.DefaultKeys().ConfigRecord] = text }
		body := updating(t, good, good.with(newer))
		assert.Equal(t, good, good.with(newer).after(t, body, responseOf(t, post(s.handler, body))), "an edit is taken back")

		old := good.with(newer)
		released := old.with(func(d *deployment) { d.image = "cart:2" })
		body = updating(t, old, released)
		assert.Equal(t, released, released.after(t, body, responseOf(t, post(s.handler, body))))
	}
}
