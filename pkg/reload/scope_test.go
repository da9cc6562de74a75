package reload

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWorkloadOutOfScopeIsLeftAlone(t *testing.T) {
	t.Parallel()
	j := newJobScene(t, nil, nil)
	j.opts.Scope.Ignored = []string{"shop"}
	assert.Zero(t, j.reconcile(t, j.leader(t)), "nor is it looked at again")
	assert.Empty(t, j.writes())
	assert.Empty(t, j.notes())

	j.opts.Scope.Ignored = nil
	j.reconcile(t, j.leader(t))
	assert.Equal(t, recreationSteps, j.writes(), "its reload was due")
}
