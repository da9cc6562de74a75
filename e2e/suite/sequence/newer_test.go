package sequence_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// A replica of the next version has written a Record that this version cannot read: no write replaces it, no change restarts
// the workload, and an Event and `why` report that.
func TestRecordOfNewerVersionIsKept(t *testing.T) {
	t.Parallel()
	const newer = "v2:a form that this version does not know"
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	w := s.Deployment("web", uses)
	s.AwaitKnown(w)
	hash := fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
	require.NotEmpty(t, hash)
	keeps := func(changes int, why string) {
		t.Helper()
		s.AwaitExactly(changes, why, w)
		stored := s.Get(w)
		assert.Equal(t, newer, stored.GetAnnotations()[fixture.ConfigRecord], why)
		assert.Equal(t, hash, fixture.TemplateAnnotations(stored)[fixture.ConfigHash], why)
	}

	writeRecord(s, w, newer)
	s.AwaitEvent(w, "RecordOfNewerVersion", "a newer version of pod-reloader has written the config-record", "upgrade this one")
	keeps(0, "the Record of a newer version")
	s.SetConfigMap("app", "key", "2")
	keeps(0, "a change of the configuration")
	s.MergeWorkload(w, `{"metadata":{"labels":{"touched":"true"}}}`)
	keeps(0, "a write of the workload")
	require.NoError(t, s.Update(t.Context(), s.Manifest(w.Kind, w.Name, uses)))
	keeps(0, "a PUT without our annotations")
	s.MergeWorkload(w, `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	keeps(1, "a release of the user")

	output, err := shared.Why(t.Context(), "deployment/web", "-n", s.Namespace)
	require.NoError(t, err)
	assert.Contains(t, output, "a newer version of pod-reloader has written the config-record")
}

// writeRecord writes a Record as another version does. The API server does not send writes of the status to the webhook,
// which would restore the old Record, but stores the annotations that they bring.
func writeRecord(s *fixture.Fixture, of observe.Workload, record string) {
	s.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+fixture.ConfigRecord+`":"`+record+`"}}}`))
	object := s.Get(of)
	require.NoError(s, s.Status().Patch(s.Context(), object, patch))
	require.Equal(s, record, object.GetAnnotations()[fixture.ConfigRecord], "the record is stored as written")
}
