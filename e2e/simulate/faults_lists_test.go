package simulate

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// A seed means what it meant before: only faults are replaced, in some histories.
func TestFaultsOfListsReplaceFaultsOnly(t *testing.T) {
	t.Parallel()
	const seeds = 60
	hows, with := replacesFaultsOnly(t, seeds, stoppedLists, stopLists, "how")
	assert.Len(t, hows, 3)
	assert.Greater(t, with, seeds/8)
	assert.Less(t, with, seeds/2)
}

// replacesFaultsOnly looks at which steps a fault takes the places of. It returns the values of a parameter, and in how many histories
// the fault is.
func replacesFaultsOnly(
	t *testing.T, seeds uint64, replace func(uint64, history.Catalogue, []history.Step) []history.Step, name, parameter string,
) (values map[string]bool, with int) {
	t.Helper()
	unraced.Test(t)
	c, values := Catalogue(), map[string]bool{}
	for seed := range seeds {
		steps := history.Draw(seeded(seed), c, history.DrawOptions{Steps: 60, Faults: true})
		drawn := replace(seed, c, steps)
		require.Len(t, drawn, len(steps))
		require.NoError(t, c.Check(history.History{Steps: drawn}))
		replaced := 0
		for i, s := range drawn {
			assert.Equal(t, steps[i].Wait, s.Wait)
			if s.Do != name {
				assert.Equal(t, steps[i], s)
				continue
			}
			_, fault := findFault(steps[i].Do)
			assert.True(t, fault, steps[i].Do)
			values[s.With[parameter]], replaced = true, 1
		}
		with += replaced
	}
	return values, with
}

func TestStoppedListsHaveTheirFate(t *testing.T) {
	t.Parallel()
	s := &simulation{random: seeded(1), apart: seeded(2)}
	const streaming = "/api/v1/secrets?sendInitialEvents=true&watch=true"
	for name, tc := range map[string]struct {
		how, verb, path string
		hangs, short    bool
	}{
		"silent list":   {howSilent, "list", "", true, false},
		"silent stream": {howSilent, "watch", streaming, true, false},
		"silent watch":  {howSilent, "watch", "", true, false},
		"part of list":  {howPart, "list", "", true, true},
		"part stream":   {howPart, "watch", streaming, true, true},
		"watch":         {howPart, "watch", "", true, false},
		"short list":    {howShort, "list", "", false, true},
		"short stream":  {howShort, "watch", streaming, false, true},
		"whole watch":   {howShort, "watch", "", false, false},
	} {
		r := stoppedRule(history.Step{On: "secrets", With: map[string]string{"how": tc.how}})
		call := &world.Call{Client: "replica-0.1", Verb: tc.verb, Path: tc.path, Key: world.Key{Resource: world.Secrets}}
		require.True(t, r.matches(call), name)
		fate := r.fate(s, call)
		assert.Equal(t, tc.hangs, fate.Hang, name)
		assert.Equal(t, tc.short, fate.Short > 0, name)
		assert.Equal(t, apiserver.Fate{Hang: fate.Hang, Short: fate.Short}, fate, name)
	}
}
