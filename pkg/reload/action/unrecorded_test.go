package action

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// A right that is missing for the Record of a suspended Job is no refused re-creation. Credentials that are not accepted pass by themselves.
func TestSuspendedJobThatCannotBeRecordedIsNotReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		note string
	}{
		"no right":                       {err: forbidden("Job")},
		"credentials are not accepted":   {apierrors.NewUnauthorized("expired"), "AdoptionFailed: "},
		"refused by an admission policy": {apierrors.NewInvalid(reloadtest.JobKind.GroupKind(), "import", nil), "AdoptionFailed: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, map[string]any{"suspend": true}, nil)
			actions := j.leader()
			actions.gather.Records, actions.recreations.gather.Records = &actions.state.Records, &actions.state.Records
			j.API.Before = failing("patch Job", tc.err)
			again := j.reconcile(t, actions)
			assert.Equal(t, tc.note != "", again.RequeueAfter > 0)
			if tc.note != "" {
				require.Len(t, j.Notes(), 1)
				assert.Contains(t, j.Notes()[0], tc.note)
				return
			}
			j.API.Calls = nil
			assert.Zero(t, j.reconcile(t, actions))
			assert.Empty(t, j.API.Calls, "it is not tried again")
			assert.Empty(t, j.Notes())
		})
	}
}
