package simulate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

func flagChange(value string) history.Step {
	return step(changeFlag, "", "flags", value, "for", "30s")
}

func TestFlagChangesByAnUpgradeRestartNothing(t *testing.T) {
	t.Parallel()
	edit := step("edit-config", "secrets/bank/db", "key", "user", "value", "v1")
	later := step("label-config", "secrets/bank/db", "value", "a")
	require.Equal(t, 1, restarts(t, nil, edit), "deployments/bank/cart")
	for _, value := range flagValues() {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, 1, restarts(t, nil, flagChange(value), later, later, edit))
		})
	}
}

func TestEarlierDeletionsCountAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	ask := step(act.AskReloader, "deployments/shop/web", "for", "auto", "lists", "removed")
	later := step("label-workload", "deployments/shop/web", "value", "a")
	for name, tt := range map[string]struct {
		deleted, flag string
		more          int
	}{
		"optional":                     {"configmaps/shop/extra", deleteFlag, 1},
		"optional that does not count": {"configmaps/shop/extra", createFlag, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := []history.Step{ask, step(act.DeleteConfig, tt.deleted), later}
			before := restarts(t, nil, steps...)
			assert.Equal(t, before+tt.more, restarts(t, nil, append(steps, flagChange(tt.flag), later, later)...))
		})
	}
}

// A seed means what it meant before: only faults are replaced, in some histories.
func TestChangesOfFlagsReplaceFaultsOnly(t *testing.T) {
	t.Parallel()
	const seeds = 100
	values, with := replacesFaultsOnly(t, seeds, changedFlags, changeFlag, "flags")
	assert.Len(t, values, len(flagValues()))
	assert.Greater(t, with, seeds/12)
	assert.Less(t, with, seeds/3)
}

func TestValuesOfFlagsAreReplaced(t *testing.T) {
	t.Parallel()
	flags := []string{"--workers=1", deleteFlag, strategyFlag + "env-vars", deleteFlag + "=true"}
	assert.Equal(t, []string{"--workers=1", strategyFlag + "env-vars", deleteFlag + "=false"}, withValues(flags, []string{deleteFlag + "=false"}))
	for _, value := range flagValues() {
		assert.True(t, isRule(value), "%s: the replicas must agree on it", value)
		require.NoError(t, CheckFlags([]string{value}))
	}
}
