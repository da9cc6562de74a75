package stamp

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	operations "gomodules.xyz/jsonpatch/v2"
)

// annotate sets or, if empty, removes an annotation.
func annotate(raw map[string]any, key, value string, path ...string) {
	for _, field := range append(path, "metadata", "annotations") {
		next, ok := raw[field].(map[string]any)
		if !ok {
			next = map[string]any{}
			raw[field] = next
		}
		raw = next
	}
	if value == "" {
		delete(raw, key)
		return
	}
	raw[key] = value
}

func setImage(image string) func(map[string]any) {
	return func(raw map[string]any) {
		spec := raw["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		spec["containers"].([]any)[0].(map[string]any)["image"] = image
	}
}

// addEnvFrom is a release that adds a reference to the ConfigMap c.
func addEnvFrom(raw map[string]any) {
	container := templateOf(raw).(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["envFrom"] = append(container["envFrom"].([]any), map[string]any{"configMapRef": map[string]any{"name": "c"}})
}

func clone(t testing.TB, raw map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(raw)
	require.NoError(t, err)
	return decode(t, text)
}

func decode(t testing.TB, text []byte) map[string]any {
	t.Helper()
	var raw map[string]any
	require.NoError(t, json.Unmarshal(text, &raw))
	return raw
}

func patch(t testing.TB, raw map[string]any, ops []operations.Operation) map[string]any {
	t.Helper()
	patched, err := tryPatch(raw, ops)
	require.NoError(t, err)
	return decode(t, patched)
}

// tryPatch applies operations as the API server does.
func tryPatch(raw map[string]any, ops []operations.Operation) ([]byte, error) {
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return text, nil
	}
	body, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	decoded, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(text)
}
