package action

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// newSelectingJob returns a Job with an annotation that selects among the objects that exist, and was started with two ConfigMaps.
func newSelectingJob(t testing.TB, annotated map[string]string, spec map[string]any, onDelete bool) *jobFixture {
	t.Helper()
	j := newJobFixture(t, nil, nil)
	j.States = map[reference.Ref]digest.State{}
	j.selected("app", "old")
	j.selected("app-y", "old")
	j.Reader.Dialects[1] = annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnDelete: onDelete}
	j.Reader.Objects = func(string) (annotation.Objects, error) {
		listed := annotation.Listed{}
		for ref := range j.States {
			listed[ref] = annotation.Traits{Marked: true}
		}
		return listed, nil
	}
	job := j.Job(spec, nil)
	job.SetAnnotations(annotated)
	req, _ := j.Reader.NewWrite(nil, workload.Object{Kind: reloadtest.JobKind, Raw: job.Object})
	managed := stamp.Choose(req).Apply(req, stamp.Inputs{States: j.States, Ring: j.Ring, Namespace: "shop", Now: j.Now}).Managed
	require.NoError(t, jobrun.Stamp(job, j.Reader.Keys, managed))
	delete(j.API.Objects, reloadtest.JobName)
	j.API.Store(job)
	return j
}

// selected sets the content of a ConfigMap.
func (j *jobFixture) selected(name, content string) {
	object := &corev1.ConfigMap{Data: map[string]string{"key": content}}
	object.Namespace, object.Name = "shop", name
	j.States[reference.Ref{Kind: reference.ConfigMap, Name: name}] = digest.StateOf(digest.OfConfigMap(object), "uid-"+name, content, j.Ring)
}

// The new Job has no Record yet, so that it does not track an object that an expression or a mark has selected and that is gone. The
// Record of the old one does.
func TestJobIsCreatedAgainWhereASelectedObjectIsDeleted(t *testing.T) {
	t.Parallel()
	for name, annotated := range map[string]map[string]string{
		"an expression": {"configmap.reloader.stakater.com/reload": "app.*"},
		"a mark":        {"reloader.stakater.com/search": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newSelectingJob(t, annotated, nil, true)
			old, actions := j.Stored().GetUID(), j.leader()
			require.Equal(t, policy.Nothing, j.Due(t).Action)
			delete(j.States, j.App)
			require.Equal(t, policy.Reload, j.Due(t).Action)
			assert.Zero(t, j.reconcile(t, actions))
			assert.Equal(t, reloadtest.RecreationSteps, j.Writes())
			assert.Equal(t, []string{"Reloaded: created again: configmap/app deleted"}, j.Notes())
			require.NotEqual(t, old, j.Stored().GetUID())
			assert.Equal(t, policy.Nothing, j.Due(t).Action)

			j.API.Calls = nil
			assert.Zero(t, j.reconcile(t, actions))
			assert.Empty(t, j.Writes(), "it is not created a second time")
		})
	}
}

// The deletion is no change where deletions do not trigger, but the Record still has the object when another one is modified.
func TestSuspendedJobAdoptsAfterTheDeletionOfASelectedObject(t *testing.T) {
	t.Parallel()
	j := newSelectingJob(t, map[string]string{"configmap.reloader.stakater.com/reload": "app.*"}, map[string]any{"suspend": true}, false)
	actions := j.leader()
	delete(j.States, reference.Ref{Kind: reference.ConfigMap, Name: "app-y"})
	require.Equal(t, policy.Nothing, j.Due(t).Action)
	j.selected("app", "new")
	require.Equal(t, policy.Reload, j.Due(t).Action)
	assert.Zero(t, j.reconcile(t, actions))
	assert.Equal(t, []string{"patch Job"}, j.Writes())
	assert.Empty(t, j.Notes())
	assert.Equal(t, policy.Nothing, j.Due(t).Action, "the pods start with the present configuration")

	j.Stored().Object["spec"].(map[string]any)["suspend"] = false
	assert.Zero(t, j.reconcile(t, actions))
	assert.False(t, slices.Contains(j.Writes(), "delete Job"), "it is not created again when it is resumed")
}

// Our lists let the deletion of what they name trigger, but have no effect on a Job.
func TestJobOfBothDialectsIsCreatedAgainForADeletionWhereTheFlagLetsItTrigger(t *testing.T) {
	t.Parallel()
	for onDelete, want := range map[bool][]string{false: nil, true: reloadtest.RecreationSteps} {
		annotated := map[string]string{reloadList: "app-y", annotation.DefaultPrefix + "configmaps": "app-y"}
		j := newSelectingJob(t, annotated, nil, onDelete)
		actions := j.leader()
		delete(j.States, reference.Ref{Kind: reference.ConfigMap, Name: "app-y"})
		assert.Zero(t, j.reconcile(t, actions))
		assert.ElementsMatch(t, want, j.Writes())
	}
}

// The creation is adopted, as where Reloader's annotation alone names the object.
func TestJobOfBothDialectsIsNotCreatedAgainForACreation(t *testing.T) {
	t.Parallel()
	annotated := map[string]string{reloadList: "app-z", annotation.DefaultPrefix + "configmaps": "app-z"}
	j := newSelectingJob(t, annotated, nil, false)
	actions := j.leader()
	j.selected("app-z", "new")
	j.reconcile(t, actions)
	assert.NotContains(t, j.Writes(), "delete Job")
}
