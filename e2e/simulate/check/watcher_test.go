package check

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// inTime gives all steps the time that they take on a control plane.
func inTime(h history.History) history.History {
	h.Steps = slices.Clone(h.Steps)
	for i := range h.Steps {
		h.Steps[i].Wait = history.Duration(10 * time.Second)
	}
	return h
}

// What depends on the order in which the scheduler serves requests cannot be compared with a control plane.
func TestSummaryDoesNotDependOnTheOrderOfRequests(t *testing.T) {
	t.Parallel()
	for name, h := range histories(1, 3) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := inTime(h)
			first := inModel(t, h)
			for seed := range uint64(2) {
				h.Seed = 1000 + seed
				assert.Empty(t, compare(h, first, inModel(t, h)))
			}
		})
	}
}

func TestMissingStepIsReported(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]history.Step{
		"a change of content":    step("edit-config", app, "key", "greeting", "value", "v1"),
		"a release":              step("release", cart, "version", "2"),
		"a broken release":       step("release-broken", store),
		"a restart by the user":  step("restart", agent),
		"one replica more":       step("scale", cart, "replicas", "3"),
		"a label of a workload":  step("label-workload", night, "value", "a"),
		"a label of an object":   step("label-config", db, "value", "a"),
		"another way of a list":  step("reorder-lists", web, "how", "reverse"),
		"a pause":                step("pause-rollout", cart),
		"a copy":                 step("copy-workload", web, "to", web+"-copy"),
		"a further digest key":   step("rotate-key", "secrets/pod-reloader/"+act.KeySecret, "seed", "1"),
		"a stripped annotation":  step("opt-out", store, "lists", "secrets"),
		"an object more":         step("create-config", late),
		"a binary key":           step("edit-config-binary", extra, "key", "level"),
		"a Job":                  step("create-job", once),
		"a run of a CronJob":     step("run-cronjob", night, "name", "by-hand-1"),
		"a suspended CronJob":    step("suspend-cronjob", night, "value", "true"),
		"a concurrencyPolicy":    step("set-concurrency", night, "policy", "Forbid"),
		"a request for pauses":   step("ask-pause", web, "period", "4s"),
		"a reload that is asked": step("verified-reload-wrong", cart, "digest", fmt.Sprintf("%064x", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nothing := step("undo", web, "back", "9")
			with := inTime(history.History{Form: history.Form, Seed: 1, Setup: installed(false), Steps: []history.Step{nothing, do}})
			without := inTime(history.History{Form: history.Form, Seed: 1, Setup: installed(false), Steps: []history.Step{nothing, nothing}})
			assert.Contains(t, compare(with, inModel(t, with), inModel(t, without)), "after step 2")
		})
	}
}

func TestEveryActOccursInATour(t *testing.T) {
	t.Parallel()
	var names []string
	for _, h := range tours(1) {
		for _, s := range h.Steps {
			names = append(names, s.Do)
			e, known := simulate.Catalogue().Find(s.Do)
			require.True(t, known, "the catalogue has the act %s", s.Do)
			assert.NoError(t, e.Check(s))
		}
	}
	left := slices.DeleteFunc(act.Catalogue(), func(e history.Entry) bool { return aboutRollouts(e.Name) || e.WeightGraph > 0 })
	assert.Len(t, names, len(left), "but for what the control plane does not serve")
	assert.NotContains(t, names, act.CreateRollout)
}

func TestWrittenStepsMakeSense(t *testing.T) {
	t.Parallel()
	for name, steps := range written() {
		for _, s := range steps {
			e, known := act.Catalogue().Find(s.Do)
			require.True(t, known, "%s: %s", name, s.Do)
			assert.NoError(t, e.Check(s), "%s: %s", name, s.Do)
		}
	}
}

func pod(uid string) world.Object {
	return world.Object{"metadata": world.Object{
		"uid": uid, "namespace": "shop", "name": uid,
		"ownerReferences": []any{world.Object{"controller": true, "kind": "ReplicaSet", "name": "cart-1", "uid": "set"}},
	}}
}

func set(replicas int64) world.Object {
	return world.Object{
		"metadata": world.Object{"uid": "set", "namespace": "shop", "name": "cart-1"},
		"spec":     world.Object{"replicas": replicas},
	}
}

func TestChanceDecidesWhichPodsOfASmallerReplicaSetStay(t *testing.T) {
	t.Parallel()
	see := func(last string) facts {
		w := newWatcher()
		w.look(0, nil, stored{world.ReplicaSets: {set(1)}, world.Pods: {pod("old")}})
		w.look(1, nil, stored{world.ReplicaSets: {set(2)}, world.Pods: {pod("old"), pod("young")}})
		w.look(2, nil, stored{world.ReplicaSets: {set(2)}, world.Pods: {pod("old"), pod("young")}})
		return w.look(3, nil, stored{world.ReplicaSets: {set(1)}, world.Pods: {pod(last)}})
	}
	assert.Empty(t, difference(see("old"), see("young")))
	assert.NotEmpty(t, difference(see("old"), see("another")))
}
