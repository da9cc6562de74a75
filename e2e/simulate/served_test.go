package simulate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// Only what an installation watches can be hidden from it.
func TestFaultsOfWatchesMeetWhatIsWatched(t *testing.T) {
	t.Parallel()
	met := func(s history.Setup, step history.Step) map[string]int {
		targets := map[string]int{}
		for seed := range uint64(200) {
			h := history.History{Seed: seed, Setup: s}
			targets[onServed([]history.Step{step}, h)[0].On]++
		}
		return targets
	}
	permissions := history.Step{Do: withdrawPermissions, On: "deployments", With: map[string]string{"verbs": "list,watch", "for": "10s"}}
	selects := history.Setup{Flags: []string{"--settle=0s", namespaceFlag + "team=shop"}}

	assert.Equal(t, map[string]int{"deployments": 200}, met(history.Setup{}, permissions))
	assert.Equal(t, map[string]int{"secrets": 200}, met(selects, history.Step{Do: withdrawPermissions, On: "secrets"}))
	assert.Equal(t, map[string]int{"deployments": 200}, met(selects, history.Step{Do: "hang-writes", On: "deployments"}))
	assert.Greater(t, met(selects, permissions)["namespaces"], 50)
	assert.Greater(t, met(selects, history.Step{Do: "hang-watches", On: "deployments"})["namespaces"], 50)
	graph := met(history.Setup{Graph: true}, permissions)
	assert.Greater(t, min(graph["filters"], graph["proxies"], graph["deployments"]), 20)
	assert.Zero(t, graph["namespaces"])
	assert.Equal(t, "10s", permissions.With["for"], "the step of the caller is not changed")
}
