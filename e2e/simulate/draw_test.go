package simulate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestSlowActsAreInFewHistories(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	const seeds = 200
	slow, with := act.Slow(), 0
	for seed := range uint64(seeds) {
		h := Draw(seed, DrawOptions{Steps: 100, Faults: true})
		if slices.ContainsFunc(h.Steps, func(s history.Step) bool { return slices.Contains(slow, s.Do) }) {
			with++
		}
	}
	assert.Positive(t, with)
	assert.Less(t, with, seeds/20)
}

// Where nothing answers for the webhook, no write would pass.
func TestWithoutAWebhookNothingInsistsOnIt(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	const seeds = 100
	insisting := 0
	for seed := range uint64(seeds) {
		assert.Empty(t, Draw(seed, DrawOptions{Steps: 1, Faults: true, Flags: []string{directFlag}}).Setup.FailurePolicy, "seed %d", seed)
		if Draw(seed, DrawOptions{Steps: 1, Faults: true}).Setup.FailurePolicy == "Fail" {
			insisting++
		}
	}
	assert.Positive(t, insisting)
}

// A policy for runs shows nothing of a CronJob that is not run.
func TestActsAboutRunsAreDrawnTogether(t *testing.T) {
	t.Parallel()
	const seeds = 100
	c, often := Catalogue(), 0
	for seed := range uint64(seeds) {
		weights := swarm(rand.New(rand.NewPCG(seed, 0)), c, history.Setup{})
		first, found := c.Find(act.AskRun)
		require.True(t, found, "the catalogue has the act")
		factor := weights[first.Name] / first.Weight
		for _, name := range act.RunActs() {
			e, found := c.Find(name)
			require.True(t, found, "the catalogue has the act %s", name)
			assert.Equal(t, factor, weights[name]/e.Weight, "%s by seed %d", name, seed)
		}
		if factor > unit {
			often++
		}
	}
	assert.Greater(t, often, seeds/10)
}

func TestDryRunsAreInSomeHistories(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	const seeds = 60
	with := 0
	for seed := range uint64(seeds) {
		h := Draw(seed, DrawOptions{Steps: 60})
		if slices.ContainsFunc(h.Steps, func(s history.Step) bool { return s.With["dry"] != "" }) {
			with++
		}
	}
	assert.Greater(t, with, seeds/8)
	assert.Less(t, with, seeds*2/3)
}

func TestFurtherFlagsAreInSomeHistories(t *testing.T) {
	t.Parallel()
	const seeds = 400
	counts := map[string]int{}
	for seed := range uint64(seeds) {
		for _, flag := range furtherFlags(seed) {
			counts[flag]++
			_, err := rulesOf([]string{flag})
			require.NoError(t, err)
		}
		if len(furtherFlags(seed)) > 0 {
			counts["any"]++
		}
	}
	assert.Greater(t, counts["any"], seeds/4)
	assert.Less(t, counts["any"], seeds/2)
	for _, flag := range []string{directFlag, autoFlag, deleteFlag, secretsFlag + "=false", labelledFlag + "=note!=b"} {
		assert.Positive(t, counts[flag], flag)
	}
}

func TestEditsOfPodReferencesReplaceNoFault(t *testing.T) {
	t.Parallel()
	replacesNoFault(t, podReferences, act.EditPodReferences)
}

func TestEditsOfUpdateStrategiesReplaceNoFault(t *testing.T) {
	t.Parallel()
	replacesNoFault(t, updateStrategies, act.SetUpdateStrategy, act.DeletePod)
}

func TestRestartsOfRolloutsReplaceNoFault(t *testing.T) {
	t.Parallel()
	replacesNoFault(t, func(seed uint64, c history.Catalogue, steps []history.Step) []history.Step {
		return rolloutRestarts(seed, c, slices.Concat([]history.Step{{Do: act.CreateRollout, On: act.Rollout}}, steps))[1:]
	}, act.AskRestart, act.RestartRollout)
}

func TestEachHistoryCanHaveARolloutThatIsRestarted(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		h := Draw(seed, DrawOptions{Steps: 40, Faults: true, Restarts: true})
		require.NoError(t, Catalogue().Check(h))
		assert.Contains(t, h.Setup.Flags, customKind)
		assert.Equal(t, act.CreateRollout, h.Steps[0].Do)
		assert.Equal(t, act.AskRestart, h.Steps[1].Do)
		edits := slices.ContainsFunc(h.Steps[2:], func(s history.Step) bool { return s.On == act.Rollout })
		assert.True(t, edits, "seed %d has another act on the Rollout", seed)
	}
}

// replacesNoFault looks at which steps some acts take the places of.
func replacesNoFault(t *testing.T, replace func(uint64, history.Catalogue, []history.Step) []history.Step, names ...string) {
	t.Helper()
	unraced.Test(t)
	const seeds = 60
	with, c := 0, Catalogue()
	for seed := range uint64(seeds) {
		steps := Draw(seed, DrawOptions{Steps: 60, Faults: true}).Steps
		drawn := replace(seed, c, steps)
		require.Len(t, drawn, len(steps))
		edited := 0
		for i, s := range drawn {
			assert.Equal(t, steps[i].Wait, s.Wait)
			if _, fault := findFault(steps[i].Do); fault {
				assert.Equal(t, steps[i], s)
			}
			if slices.Contains(names, s.Do) {
				edited++
			}
		}
		require.NoError(t, c.Check(history.History{Steps: drawn}))
		if edited > 0 {
			with++
		}
	}
	assert.Greater(t, with, seeds/8)
	assert.Less(t, with, seeds*2/3)
}
