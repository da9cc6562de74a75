package simulate

import (
	"strings"
	"testing"

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
	assert.InDelta(t, seeds/finaleOf, finales, seeds/10)
	assert.Greater(t, deletions, seeds/8, "deletions that no watch delivers")
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
