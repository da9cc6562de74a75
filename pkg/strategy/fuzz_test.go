package strategy_test

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

// FuzzFields shows that the fields of any template can be put on any other, that nothing else of it changes, and that they
// are then read as they were put.
func FuzzFields(f *testing.F) {
	const fields = `{"env":[{"container":"c","index":1,"name":"STAKATER_A_SECRET","value":"1"},{"container":"c","index":-1,"name":"STAKATER_B_SECRET","value":"1"}]}`
	f.Add(users, fields)
	f.Add(`{"spec":{"containers":[{"name":"c","env":[{"name":"STAKATER_A_SECRET","value":"0"}]},{"name":"c"},{"name":"d","env":{}},1]}}`, fields)
	f.Add(`{"metadata":[],"spec":{"containers":[{"name":"c","env":null}]}}`, `{"env":[{"container":"c","index":9,"name":"X"}]}`)
	f.Add(`{"spec":{"containers":[{"name":"c"}]}}`, `{"env":[{"container":"c","index":0,"name":"STAKATER_A_SECRET","value":"1"},{"container":"c","index":-1,"name":"STAKATER_B_SECRET","value":"1"}]}`)
	f.Fuzz(func(t *testing.T, text, other string) {
		var template map[string]any
		if json.Unmarshal([]byte(text), &template) != nil || template == nil {
			return
		}
		want := strategy.Parse(other).On(template)
		strategy.UsersOf(template)
		ops, err := json.Marshal(want.Operations(template, ""))
		require.NoError(t, err)
		patch, err := jsonpatch.DecodePatch(ops)
		require.NoError(t, err)
		before, err := json.Marshal(template)
		require.NoError(t, err)
		if string(ops) == "null" {
			return
		}
		after, err := patch.Apply(before)
		require.NoError(t, err, "%s", ops)
		var patched map[string]any
		require.NoError(t, json.Unmarshal(after, &patched))
		assert.Equal(t, want.Variables, strategy.Read(patched).Variables)
		assert.Equal(t, want, want.On(patched), "and are put there again")
		assert.Equal(t, normal(t, strategy.Without(template)), normal(t, strategy.Without(patched)))
	})
}

// normal returns a template without environments that are empty.
func normal(t *testing.T, template map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(template)
	require.NoError(t, err)
	template = decode(t, string(text))
	spec, _ := template["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		container, _ := c.(map[string]any)
		if env, isList := container["env"].([]any); container["env"] == nil || isList && len(env) == 0 {
			delete(container, "env")
		}
	}
	return template
}
