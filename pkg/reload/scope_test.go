package reload

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
