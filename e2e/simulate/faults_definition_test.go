package simulate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestDefinitionsAreTakenAwayInSomeHistoriesWithRollouts(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	const seeds = 200
	taken := func(h history.History) bool {
		return slices.ContainsFunc(h.Steps, func(s history.Step) bool { return s.Do == takeDefinition })
	}
	with := 0
	for seed := range uint64(seeds) {
		h := Draw(seed, DrawOptions{Steps: 60, Faults: true, Restarts: true})
		require.NoError(t, Catalogue().Check(h))
		if taken(h) {
			with++
			assert.True(t, slices.ContainsFunc(h.Setup.Flags, namesRollouts), "seed %d", seed)
		}
		assert.False(t, taken(Draw(seed, DrawOptions{Steps: 60, BuiltinKinds: true})), "seed %d", seed)
	}
	assert.Greater(t, with, seeds/40)
	assert.Less(t, with, seeds/3)
}
