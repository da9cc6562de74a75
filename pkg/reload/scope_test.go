package reload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

func TestWorkloadOutOfScopeIsLeftAlone(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	j.opts.Scope.Ignored = []string{"shop"}
	assert.Zero(t, j.reconcile(t, j.leader(t)), "nor is it looked at again")
	assert.Empty(t, j.Writes())
	assert.Empty(t, j.Notes())

	j.opts.Scope.Ignored = nil
	j.reconcile(t, j.leader(t))
	assert.Equal(t, reloadtest.RecreationSteps, j.Writes(), "its reload was due")
}

// The watch may be behind: the Job has left the scope since it was looked at.
func TestWorkloadThatHasLeftTheScopeIsLeftAlone(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	var err error
	j.opts.Scope.ObjectSelector, err = labels.Parse("tier!=other")
	require.NoError(t, err)
	j.looked = func() { j.Metadata("labels", map[string]any{"tier": "other"}) }
	assert.Zero(t, j.reconcile(t, j.leader(t)), "the watch brings it back")
	assert.Empty(t, j.Writes())

	j.Metadata("labels", map[string]any{})
	j.reconcile(t, j.leader(t))
	assert.Equal(t, reloadtest.RecreationSteps, j.Writes(), "its reload was due")
}
