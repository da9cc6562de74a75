package kind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// The API server makes the creator of an object the owner of its fields. A Job that is created again goes back to its user: neither the next
// change of its manifest, nor a field that was taken out of the manifest, conflicts with pod-reloader.
func TestJobThatIsCreatedAgainBelongsToItsUser(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	manifest := func(edit func(metadata map[string]any)) *unstructured.Unstructured {
		job := jobManifest(s, "import", automatic(), map[string]any{"backoffLimit": int64(2)})
		edit(job.Object["metadata"].(map[string]any))
		return job
	}
	apply := func(job *unstructured.Unstructured) {
		t.Helper()
		require.NoError(t, s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(job), client.FieldOwner("gitops")), "without force")
	}
	apply(manifest(func(metadata map[string]any) {
		metadata["labels"] = map[string]any{"chart": "import-1", "team": "shop"}
	}))
	w := workloadOf(s, "import")
	first, err := jobOf(s, w)
	require.NoError(t, err)
	s.SetConfigMap("app", "key", "2")
	second := awaitReplaced(s, w, first.UID)
	awaitNoManifest(s)

	apply(manifest(func(metadata map[string]any) { metadata["labels"] = map[string]any{"chart": "import-2"} }))
	job, err := jobOf(s, w)
	require.NoError(t, err)
	assert.Equal(t, second.UID, job.UID, "it is the same Job")
	assert.Equal(t, "import-2", job.Labels["chart"])
	assert.NotContains(t, job.Labels, "team", "it was taken out of the manifest")
	assert.Contains(t, job.Annotations, fixture.LastReload, "that of pod-reloader stays")
}
