package action

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// What the loop has decided from its caches is decided again from what is live before a Job is deleted.
func TestJobIsDeletedOnlyIfItsReloadIsStillDue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile func(j *jobFixture, a *Actions)
		want      []string
		again     bool
	}{
		"the Job is gone":                 {meanwhile: func(j *jobFixture, _ *Actions) { delete(j.API.Objects, reloadtest.JobName) }},
		"the configuration is back":       {meanwhile: func(j *jobFixture, _ *Actions) { j.Set("old") }, again: true},
		"the configuration changed again": {meanwhile: func(j *jobFixture, _ *Actions) { j.Set("newer") }, want: reloadtest.RecreationSteps},
		"the Job is excluded": {meanwhile: func(j *jobFixture, _ *Actions) {
			j.Metadata("labels", map[string]any{annotation.DefaultPrefix + "ignored": "true"})
		}},
		"the Job asks for nothing": {meanwhile: func(j *jobFixture, _ *Actions) { j.Annotate("reloader.stakater.com/auto", "false") }},
		"the Job is out of scope":  {meanwhile: func(j *jobFixture, _ *Actions) { j.Metadata("labels", map[string]any{"tier": "other"}) }},
		"the Job has finished":     {meanwhile: func(j *jobFixture, _ *Actions) { j.finish() }},
		"the Job has finished, and finished ones run again": {meanwhile: func(j *jobFixture, a *Actions) {
			j.finish()
			a.recreations.rerunFinished = true
		}, want: reloadtest.RecreationSteps},
		"the Job has finished after the change": {meanwhile: func(j *jobFixture, a *Actions) {
			j.finish()
			a.state.Changes.EventArrived(reloadtest.JobKey, j.Now)
		}, want: reloadtest.RecreationSteps},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, nil, nil)
			actions := j.leader()
			cached, _ := j.Summary()
			s := actions.gather.Subject(reloadtest.JobKey, cached, state.Arrivals{})
			tc.meanwhile(j, actions)
			result := actions.Close(t.Context(), actions.Reload(t.Context(), s, policy.Input{}, policy.Verdict{}))
			assert.ElementsMatch(t, tc.want, j.Writes())
			assert.Equal(t, tc.again, result.RequeueAfter > 0)
			assert.Len(t, j.Notes(), min(1, len(tc.want)), "without a reload there is nothing to report")
		})
	}
}

func (j *jobFixture) finish() {
	j.Stored().Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
}

// The answer to the creation of a Job may be that another one was faster: whose it is, the next look says.
func TestJobThatIsCreatedMeanwhileIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	j, actions := begun(t)
	j.API.Before = func(call string) error {
		if call == "create Job" {
			j.API.Store(j.Job(nil, nil))
		}
		return nil
	}
	assert.Positive(t, j.reconcile(t, actions).RequeueAfter)
	assert.Empty(t, j.Notes(), "what passes by itself is not reported")
	j.API.Before = nil
	j.reconcile(t, actions)
	require.Len(t, j.Notes(), 1)
	assert.Contains(t, j.Notes()[0], "RecreationDropped: another Job of this name was created")
	assert.Len(t, j.API.Objects, 1, "the Secret is gone")
}
