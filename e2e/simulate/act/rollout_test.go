package act

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// container returns the one container of the Rollout.
func (f *recorder) container() world.Object {
	containers := world.Section(f.get(Rollout), "spec", "template", "spec")["containers"].([]any)
	require.Len(f.t, containers, 1)
	return containers[0].(world.Object)
}

func TestActsOnARolloutNeedOne(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.ErrorIs(t, f.do("release", Rollout, "version", "2"), ErrSkipped)
	require.NoError(t, f.do(CreateRollout, Rollout))
	require.ErrorIs(t, f.do(CreateRollout, Rollout), ErrSkipped, "it is there")
	require.NoError(t, f.do("release", Rollout, "version", "2"))
	assert.Equal(t, "example.com/pay:2", f.container()["image"])
}

func TestRolloutIsDrawnOnlyAfterItsCreation(t *testing.T) {
	t.Parallel()
	after := 0
	for seed := range uint64(20) {
		made := false
		for _, s := range history.Draw(rand.New(rand.NewPCG(seed, 3)), Catalogue(), history.DrawOptions{Steps: 100}) {
			made = made || s.Do == CreateRollout
			if strings.HasPrefix(s.On, "rollouts/") {
				assert.True(t, made, s.Do)
				after++
			}
		}
	}
	assert.Greater(t, after, 20)
}

func TestCustomResourceGetsNoStrategicMergePatch(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do(CreateRollout, Rollout))
	require.NoError(t, f.do("set-env-template", Rollout, "value", "a"))
	require.NoError(t, f.do("set-env-template", Rollout, "value", "b"))
	assert.ElementsMatch(t, []any{
		world.Object{"name": "VERSION", "value": "1"}, world.Object{"name": "NOTE", "value": "b"},
	}, f.container()["env"])
	require.NoError(t, f.do("apply-workload", Rollout, "version", "3"))
	assert.Equal(t, "example.com/pay:3", f.container()["image"])
	require.NoError(t, f.do("helm-upgrade", Rollout, "version", "4"))
	require.NoError(t, f.do("replace-workload", Rollout, "version", "5"))
	last := f.requests[len(f.requests)-1]
	assert.Contains(t, string(last.Body), "resourceVersion", "the API wants one")
	for _, r := range f.requests {
		assert.NotEqual(t, strategicPatch, r.ContentType, r.Path)
	}
}

func TestRolloutAsksForRestarts(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.ErrorIs(t, f.do(AskRestart, Rollout, "to", "restart"), ErrSkipped)
	require.NoError(t, f.do(CreateRollout, Rollout))
	require.NoError(t, f.do(AskRestart, Rollout, "to", "restart"))
	annotations := world.Annotations(f.get(Rollout))
	assert.Equal(t, "restart", annotations[rolloutStrategy])
	assert.Contains(t, annotations, listOfConfigMaps)
	require.NoError(t, f.do(AskRestart, Rollout, "to", "absent", "asks", "auto"))
	annotations = world.Annotations(f.get(Rollout))
	assert.NotContains(t, annotations, rolloutStrategy)
	assert.NotContains(t, annotations, listOfConfigMaps)
	assert.Equal(t, "true", annotations[otherAuto])
}

func TestUserRestartsARollout(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do(CreateRollout, Rollout))
	before := time.Now().Truncate(time.Second)
	require.NoError(t, f.do(RestartRollout, Rollout, "in", "1m"))
	at, err := time.Parse(time.RFC3339, world.Text(f.get(Rollout), "spec", "restartAt"))
	require.NoError(t, err)
	assert.False(t, at.Before(before.Add(time.Minute)), "the restart is in a minute")
	require.NoError(t, f.do("apply-workload", Rollout, "version", "2"))
	assert.NotEmpty(t, world.Text(f.get(Rollout), "spec", "restartAt"), "a manifest that is applied does not own it")
	require.NoError(t, f.do("replace-workload", Rollout, "version", "3"))
	assert.Empty(t, world.Text(f.get(Rollout), "spec", "restartAt"))
}

func TestUndoOfARolloutBringsTheTemplateOnly(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do(CreateRollout, Rollout))
	live := f.get(Rollout)
	for n, revision := range []string{"1", "2"} {
		template := f.decode(f.encode(world.Section(live, "spec", "template")))
		world.Section(template, "metadata", "labels")["pod-template-hash"] = revision
		world.Section(template, "metadata", "annotations")[Prefix+"config-hash"] = revision
		f.put("replicasets/shop/pay-"+revision, world.Object{
			"metadata": owned(live, "pay", world.Object{revisionAnnotation: revision, listOfConfigMaps: "old"}),
			"spec":     world.Object{"replicas": n, "template": template},
		})
	}
	before := world.Annotations(live)
	require.NoError(t, f.do("undo", Rollout, "back", "1"))
	after := f.get(Rollout)
	assert.Equal(t, before, world.Annotations(after))
	assert.Equal(t, "1", world.Annotations(world.Section(after, "spec", "template"))[Prefix+"config-hash"])
	assert.NotContains(t, world.Section(after, "spec", "template", "metadata", "labels"), "pod-template-hash")
}
