package simulate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

// finaleIn returns the fault that ends a history, and the changes after it.
func finaleIn(h history.History) (fault history.Step, changes []history.Step, found bool) {
	for n := len(h.Steps) - 1; n >= 0 && n >= len(h.Steps)-3; n-- {
		if _, is := findFault(h.Steps[n].Do); is {
			hides := h.Steps[n].With["for"] == "8s" && h.Steps[n].With["resource"] == "" && h.Steps[n].Do != "hang-writes"
			return h.Steps[n], h.Steps[n+1:], hides && n < len(h.Steps)-1
		}
	}
	return fault, nil, false
}

func TestFinaleHidesTheLastChanges(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	const seeds = 400
	finales, deletions := 0, 0
	for seed := range uint64(seeds) {
		h := Draw(seed+1, DrawOptions{Steps: 30, Faults: true})
		require.Len(t, h.Steps, 30)
		require.NoError(t, Catalogue().Check(h))
		fault, changes, found := finaleIn(h)
		if !found {
			continue
		}
		finales++
		for _, change := range changes {
			if fault.Do == "fold-watches" && change.Do == act.DeleteConfig && strings.HasPrefix(change.On, fault.On+"/") {
				deletions++
			}
		}
	}
	assert.InDelta(t, seeds/finaleOf*33/100, finales, seeds/20, "without a situation, or with a deletion that is not seen")
	assert.Greater(t, deletions, seeds/16, "deletions that no watch delivers")
}

func TestSituationBeginsWhenEarlierFaultsHaveEnded(t *testing.T) {
	t.Parallel()
	before := []history.Step{
		{Do: "webhook-away", Wait: history.Duration(time.Second), With: map[string]string{"for": "45s"}},
		{Do: "restart", On: "deployments/shop/web", Wait: history.Duration(5 * time.Second)},
	}
	filler := make([]history.Step, 20)
	for _, kind := range situationKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			situation := kind.draw(rand.New(rand.NewPCG(1, 0)))
			h := history.History{Form: history.Form, Setup: history.Setup{Replicas: 1}, Steps: append(slices.Clone(before), filler...)}
			stage(&h, situation)
			require.Len(t, h.Steps, len(before)+len(filler))
			assert.Equal(t, situation.steps, h.Steps[len(h.Steps)-len(situation.steps):])
			h.Steps = slices.DeleteFunc(h.Steps, func(s history.Step) bool { return s.Do == "" })
			require.NoError(t, Catalogue().Check(h))
			if situation.undisturbed {
				faults := slices.ContainsFunc(h.Steps, func(s history.Step) bool { _, fault := findFault(s.Do); return fault })
				assert.False(t, faults, "the history has no faults")
				return
			}
			var at, situationAt time.Duration
			for _, step := range h.Steps {
				at += time.Duration(step.Wait)
				if situationAt == 0 && (step.Do == act.CreateConfig || step.Do == act.RecreateWorkload) {
					situationAt = at
				}
			}
			assert.Equal(t, 46*time.Second+max(situation.rest, betweenSituations), situationAt, "45s after the first step")

			short := history.History{Steps: slices.Clone(before)}
			stage(&short, situation)
			assert.Equal(t, before, short.Steps, "a situation needs more steps")
		})
	}
}

func TestEachSituationIsDrawn(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	const seeds = 900
	last := map[string]int{}
	for seed := range uint64(seeds) {
		h := Draw(seed+1, DrawOptions{Steps: 30, Faults: true})
		require.NoError(t, Catalogue().Check(h))
		for n, step := range h.Steps {
			if step.Do == act.RecreateWorkload && n >= len(h.Steps)-6 && step.With["from"] == "manifest" && time.Duration(step.Wait) == 5*time.Second {
				last[h.Steps[n+1].Do]++
			}
		}
	}
	for _, do := range []string{"fold-watches", "webhook-away", "api-errors", "hang-writes", "hammer-config", "rotate-key", "lose-key", "edit-config-binary", act.AnnotateForReloader} {
		assert.GreaterOrEqual(t, last[do], seeds/300, do)
	}
}

func TestDrawEndsWithTheSituationAskedFor(t *testing.T) {
	t.Parallel()
	for _, name := range SituationNames() {
		h := Draw(1, DrawOptions{Steps: 20, Faults: true, Situation: name})
		require.NoError(t, Catalogue().Check(h), name)
	}
	constant := Draw(1, DrawOptions{Steps: 20, Faults: true, Situation: "constant-conflict"})
	assert.Equal(t, "hammer-config", constant.Steps[19].Do)
	assert.Positive(t, constant.Setup.Latency, "requests take longer than the pauses between the writes")
	assert.Equal(t, constant.Setup, Draw(1, DrawOptions{Steps: 20, Faults: true, Situation: "constant-conflict"}).Setup)
	passes := Draw(1, DrawOptions{Steps: 20, Faults: true, Situation: "constant-passes"})
	assert.Equal(t, "checksum", passes.Setup.OtherWebhooks, "ours is called again for what it stamps")
	assert.Positive(t, passes.Setup.Latency)
}

func TestFinaleNeedsFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		_, _, found := finaleIn(Draw(seed+1, DrawOptions{Steps: 30}))
		require.False(t, found, "seed %d", seed+1)
	}
}

func TestFinaleDeletesWhatIsThere(t *testing.T) {
	t.Parallel()
	deleted := history.Step{Do: act.DeleteConfig, On: "configmaps/shop/app"}
	created := history.Step{Do: act.CreateConfig, On: "configmaps/shop/app"}
	for name, test := range map[string]struct {
		steps []history.Step
		want  bool
	}{
		"from the beginning": {nil, true},
		"deleted":            {[]history.Step{deleted}, false},
		"created again":      {[]history.Step{deleted, created}, true},
		"deleted again":      {[]history.Step{created, deleted}, false},
		"another object":     {[]history.Step{{Do: act.DeleteConfig, On: "configmaps/bank/app"}}, true},
	} {
		assert.Equal(t, test.want, mayExist(test.steps, "configmaps/shop/app"), name)
	}
	assert.False(t, mayExist(nil, act.LateConfig), "the object does not exist in the beginning")
	assert.True(t, mayExist([]history.Step{{Do: act.CreateConfig, On: act.LateConfig}}, act.LateConfig), "the object was created")
}
