package webhook_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// update writes what the handler answers into testdata, to be read with care before it is committed.
var update = flag.Bool("update", false, "write the answers into testdata")

// fixture reads testdata/NAME as JSON. The request of a case is a merge patch to testdata/request.yaml, a write that changes nothing.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	text := readYAML(t, name)
	if filepath.Base(name) != "request.yaml" {
		return text
	}
	merged, err := jsonpatch.MergePatch(readYAML(t, "request.yaml"), text)
	require.NoError(t, err)
	return merged
}

func readYAML(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	text, err := yaml.YAMLToJSON(content)
	require.NoError(t, err)
	return text
}

// expected is what a fixture's expected.yaml says of the answer.
type expected struct {
	// Why is the reason of the case.
	Why string `json:"why"`
	// Reads is how often configuration is read.
	Reads    int64    `json:"reads"`
	Allowed  bool     `json:"allowed"`
	Warnings []string `json:"warnings"`
	// Audit are the audit annotations.
	Audit map[string]string `json:"audit"`
	// Patch is the JSON patch; null is none.
	Patch []map[string]any `json:"patch"`
	// Result is the error of a rejection.
	Result *metav1.Status `json:"result"`
}

// TestFixtures runs the pairs in testdata: a case is a directory with request.yaml and expected.yaml.
func TestFixtures(t *testing.T) {
	t.Parallel()
	requests, err := filepath.Glob("testdata/*/request.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, requests)
	for _, path := range requests {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want expected
			require.NoError(t, yaml.UnmarshalStrict(fixture(t, name+"/expected.yaml"), &want))
			require.NotEmpty(t, want.Why, "a case has a reason")
			w := newWorld(t)
			body := fixture(t, name+"/request.yaml")
			response := responseOf(t, post(newHandler(t, w, nil, logr.Discard()).handler, body))
			requireHarmless(t, body, response)
			if *update {
				rewrite(t, name, expected{
					Why: want.Why, Reads: w.reads.Load(), Allowed: response.Allowed, Warnings: response.Warnings,
					Audit: response.AuditAnnotations, Result: rejectionOf(response), Patch: patchOf(t, response),
				})
				return
			}
			assert.Equal(t, want.Allowed, response.Allowed, want.Why)
			assert.Equal(t, want.Reads, w.reads.Load(), "reads")
			assert.Equal(t, want.Warnings, response.Warnings)
			assert.Equal(t, want.Audit, response.AuditAnnotations)
			assert.Equal(t, want.Result, rejectionOf(response))
			assert.Equal(t, "fixture", string(response.UID))
			assert.Equal(t, want.Patch, patchOf(t, response), "%s", response.Patch)
		})
	}
}

func rejectionOf(response *admissionv1.AdmissionResponse) *metav1.Status {
	if response.Allowed {
		return nil
	}
	return response.Result
}

// patchOf decodes the patch of an answer; nil if there is none.
func patchOf(t testing.TB, response *admissionv1.AdmissionResponse) (patch []map[string]any) {
	t.Helper()
	if response.PatchType == nil {
		require.Empty(t, response.Patch, "a patch needs a type")
		return nil
	}
	require.Equal(t, admissionv1.PatchTypeJSONPatch, *response.PatchType)
	require.NoError(t, json.Unmarshal(response.Patch, &patch))
	require.NotEmpty(t, patch, "an empty patch is none")
	return patch
}

func rewrite(t testing.TB, name string, answer expected) {
	t.Helper()
	content, err := yaml.Marshal(answer)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join("testdata", name, "expected.yaml"), content, 0o600))
}
