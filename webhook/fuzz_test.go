package webhook_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	rawjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
)

// requireHarmless fails if a patch changes anything but annotations of ours.
func requireHarmless(t testing.TB, body []byte, response *admissionv1.AdmissionResponse) {
	t.Helper()
	if len(response.Patch) == 0 {
		return
	}
	var reviewed admissionv1.AdmissionReview
	require.NoError(t, rawjson.Unmarshal(body, &reviewed))
	before := reviewed.Request.Object.Raw
	patch, err := jsonpatch.DecodePatch(response.Patch)
	require.NoError(t, err)
	after, err := patch.ApplyWithOptions(before, &jsonpatch.ApplyOptions{EscapeHTML: false})
	require.NoError(t, err, "the API server must be able to apply it: %s to %s", response.Patch, before)
	assert.Equal(t, withoutOurs(t, before), withoutOurs(t, after))
}

// withoutOurs decodes an object and removes our annotations, and the maps that are empty without them.
func withoutOurs(t testing.TB, raw []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object any
	require.NoError(t, decoder.Decode(&object))
	return clean(object)
}

func clean(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for key, value := range m {
		if value = clean(value); key == "annotations" || key == "metadata" || key == "template" || key == "spec" || key == "jobTemplate" {
			if inner, ok := value.(map[string]any); ok && len(inner) == 0 || value == nil {
				delete(m, key)
			}
		}
		if strings.HasPrefix(key, annotation.DefaultPrefix) {
			delete(m, key)
		}
	}
	return m
}

// FuzzReview shows that no body makes the handler panic, and that no patch does harm.
func FuzzReview(f *testing.F) {
	// Small seeds: the fuzzer minimizes what it finds, and TestFixtures has the big ones.
	const lists, managed = `"annotations":{"pod-reloader.cs.sap.com/configmaps":"app,x"}`, `"annotations":{"pod-reloader.cs.sap.com/config-hash":"1"}`
	for _, fields := range []string{
		`"operation":"CREATE","object":{"metadata":{` + lists + `},"spec":{"template":{"x":1}}}`,
		`"operation":"CREATE","object":{"metadata":{"annotations":null,"labels":[]},"spec":{"template":{"metadata":null}}}`,
		`"operation":"UPDATE","object":{"metadata":{` + lists + `},"spec":{"template":{}}},"oldObject":{}`,
		`"operation":"UPDATE","object":{"spec":{"template":{}}},"oldObject":{"spec":{"template":{"metadata":{` + managed + `}}}}`,
		`"operation":"UPDATE","object":{"metadata":{` + managed + `}},"oldObject":{"metadata":{` + lists + `}}`,
		`"operation":"DELETE"`,
	} {
		f.Add([]byte(review(fields)))
	}
	s := newHandler(f, newWorld(f), nil, logr.Discard())
	f.Fuzz(func(t *testing.T, body []byte) {
		recorder := post(s.handler, body)
		require.Zero(t, decisions(t, s, "none", "panicked"))
		response := answerOf(t, recorder)
		if !response.Allowed && len(response.UID) == 0 {
			require.GreaterOrEqual(t, response.Result.Code, int32(400))
			require.Less(t, response.Result.Code, int32(500))
			return
		}
		requireHarmless(t, body, response)
	})
}
