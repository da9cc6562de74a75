package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachEventIsAChangeThatRestartsNothing(t *testing.T) {
	t.Parallel()
	m, err := Start(t.Context(), Cluster{Workloads: 500})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Stop()) })
	for _, event := range Events() {
		for round := range 2 {
			before, rests := m.server.Version(), 0
			require.NoError(t, m.Send(event, round, func() error {
				rests++
				return nil
			}))
			assert.EqualValues(t, InRound, m.server.Version()-before, "%s, round %d: a change that changes nothing has no event", event.Name, round)
			assert.Equal(t, cycle, rests, event.Name)
		}
	}
	assert.Empty(t, m.reloads)
}
