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
)

// finaleIn returns the fault that ends a history, and the changes after it.
func finaleIn(h history.History) (fault history.Step, changes []history.Step, found bool) {
	for n := len(h.Steps) - 1; n >= 0 && n >= len(h.Steps)-3; n-- {
		if _, is := findFault(h.Steps[n].Do); is {
			return h.Steps[n], h.Steps[n+1:], h.Steps[n].With["for"] == "8s" && n < len(h.Steps)-1
		}
	}
	return fault, nil, false
}

func TestFinaleHidesTheLastChanges(t *testing.T) {
	t.Parallel()
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
	assert.InDelta(t, seeds/finaleOf*3/4, finales, seeds/10, "but for those that end with an undo")
	assert.Greater(t, deletions, seeds/8, "deletions that no watch delivers")
}

func TestSceneBeginsWhenEarlierFaultsHaveEnded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 0))
	before := []history.Step{
		{Do: "webhook-away", Wait: history.Duration(time.Second), With: map[string]string{"for": "45s"}},
		{Do: "restart", On: "deployments/shop/web", Wait: history.Duration(5 * time.Second)},
	}
	filler := make([]history.Step, 10)
	for name, scene := range map[string]func(*rand.Rand, []history.Step) []history.Step{"watched": watched, "revived": revived} {
		steps := scene(r, append(slices.Clone(before), filler...))
		require.Len(t, steps, len(before)+len(filler), name)
		var at, faultsEnd, sceneAt time.Duration
		for n, step := range steps {
			at += time.Duration(step.Wait)
			if n == 0 {
				faultsEnd = at + 45*time.Second
			}
			if step.Do == act.CreateConfig || step.Do == act.RecreateWorkload {
				sceneAt = at
				break
			}
		}
		assert.Equal(t, faultsEnd+betweenScenes, sceneAt, name)
	}
	assert.Equal(t, before, watched(r, before), "a scene needs more steps")
}

func TestScenesAreDrawn(t *testing.T) {
	t.Parallel()
	const seeds = 400
	recreations, undone := 0, 0
	for seed := range uint64(seeds) {
		h := Draw(seed+1, DrawOptions{Steps: 30, Faults: true})
		require.NoError(t, Catalogue().Check(h))
		for _, step := range h.Steps[len(h.Steps)-10:] {
			if step.Do == act.RecreateWorkload && step.With["from"] == "manifest" && time.Duration(step.Wait) >= 5*time.Second {
				recreations++
				break
			}
		}
		if last := h.Steps[len(h.Steps)-1]; last.Do == "undo" && time.Duration(last.Wait) == betweenScenes {
			undone++
		}
	}
	assert.Greater(t, recreations, seeds/6, "scenes in all")
	assert.Greater(t, undone, seeds/12, "requests that an undo brings back")
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
	assert.False(t, mayExist(nil, act.LateConfig))
	assert.True(t, mayExist([]history.Step{{Do: act.CreateConfig, On: act.LateConfig}}, act.LateConfig))
}
