package simulate

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestFaultsAreDrawnForReplicasThatThereAre(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	met := map[string]bool{}
	for seed := range uint64(100) {
		h := Draw(seed, DrawOptions{Steps: 60, Faults: true})
		for _, step := range h.Steps {
			number, ok := strings.CutPrefix(step.On, replicaPrefix)
			if !ok {
				continue
			}
			n, err := strconv.Atoi(number)
			assert.NoError(t, err)
			assert.Less(t, n, h.Setup.All(), "seed %d: %s on %s", seed, step.Do, step.On)
			met[step.On] = true
		}
	}
	assert.Len(t, met, 3)
}

// The oracle excuses the program for a minute or more after a fault.
func TestFaultThatDoesNotTakePlaceIsNotCounted(t *testing.T) {
	t.Parallel()
	run := runner(t)
	step := func(do, on string) history.Step {
		return history.Step{Wait: history.Duration(time.Second), Do: do, On: on, With: map[string]string{"for": "5s"}}
	}
	tests := map[string]struct {
		steps []history.Step
		tried map[string]int
		// faults are those that the oracle hears of: a kill is reported as one of the process and one of the replica.
		faults int
	}{
		"a replica that there is not": {
			steps: []history.Step{step("kill", "replica-1"), step("freeze", "replica-2"), step("api-away", "replica-1"), step("lag", "replica-1")},
		},
		"a process that does not run": {
			steps:  []history.Step{step("kill", "replica-0"), step("kill", "replica-0"), step("freeze", "replica-0")},
			tried:  map[string]int{"kill": 1},
			faults: 2,
		},
		"a fault that is over at once": {
			steps: []history.Step{step("break-watches", "")}, tried: map[string]int{"break-watches": 1}, faults: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := run(history.History{Form: history.Form, Seed: 1, Setup: history.Setup{Replicas: 1}, Steps: tt.steps})
			assert.Empty(t, o.Violations)
			assert.Equal(t, tt.tried, o.Tried)
			// The processes that are ended with the run are reported, too.
			assert.Equal(t, tt.faults, o.Judged["faults"]-1)
		})
	}
}

// A version that is gone says nothing about a request that names none: permissions that are withdrawn meanwhile count for it.
func TestFaultThatHasNothingToSayLeavesARequestToTheNext(t *testing.T) {
	t.Parallel()
	s := &simulation{random: rand.New(rand.NewPCG(1, 0)), apart: rand.New(rand.NewPCG(2, 0))}
	says := func(fate apiserver.Fate) *rule {
		return &rule{percent: 100, fate: func(*simulation, *world.Call) apiserver.Fate { return fate }}
	}
	s.faults.rules = []*rule{says(apiserver.Fate{}), says(apiserver.Fate{Drop: true}), says(apiserver.Fate{Hang: true})}
	assert.Equal(t, apiserver.Fate{Drop: true}, s.faults.fate(s, &world.Call{Client: "replica-0.1", Verb: "list"}))
	assert.Equal(t, 1, s.hits)
}
