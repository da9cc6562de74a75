package explain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// newRun returns a CronJob that configmap/app has reloaded a minute ago, and one of whose Jobs is active since before that.
func newRun(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.kind = "cronjob"
	f.raw["spec"] = map[string]any{"concurrencyPolicy": "Forbid", "jobTemplate": map[string]any{"spec": f.raw["spec"]}}
	f.metadata()["uid"] = "u1"
	f.annotations()["configmap.reloader.stakater.com/reload"] = "app"
	f.annotations()[f.in.Keys.LastReload] = record.LastReload{
		Time: now.Add(-time.Minute), Hash: f.hash, Cause: record.CauseConfigChange, Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}.String()
	f.in.Jobs = []cronrun.Job{cronrun.JobOf(unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": "long", "uid": "u2", "creationTimestamp": now.Add(-time.Hour).Format(time.RFC3339), "ownerReferences": []any{map[string]any{"uid": "u1"}},
	}}}, f.in.Keys.ConfigHash)}
	return f
}

func TestRunThatWaitsIsExplained(t *testing.T) {
	t.Parallel()
	const waits = "waits until no other Job is active (concurrencyPolicy: Forbid): long"
	for name, tc := range map[string]struct {
		change func(f *fixture)
		want   string
		// needs says that the Jobs are needed for the answer.
		needs bool
	}{
		"another Job is active":         {change: func(*fixture) {}, want: waits, needs: true},
		"none is active":                {change: func(f *fixture) { f.in.Jobs = nil }, needs: true},
		"the run was refused":           {change: func(f *fixture) { f.in.Warnings = []explain.Warning{{Time: now, Reason: "RunForbidden"}} }},
		"another warning":               {change: func(f *fixture) { f.in.Warnings = []explain.Warning{{Time: now, Reason: "RunFailed"}} }, want: waits, needs: true},
		"changes are posted":            {change: func(f *fixture) { f.in.NotifyOnly = true }},
		"the CronJob is out of scope":   {change: func(f *fixture) { f.in.Outside = "--namespaces does not name shop" }},
		"the policy allows both":        {change: func(f *fixture) { f.raw["spec"].(map[string]any)["concurrencyPolicy"] = "Allow" }},
		"the annotations do not run it": {change: func(f *fixture) { delete(f.annotations(), "configmap.reloader.stakater.com/reload") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRun(t)
			tc.change(f)
			assert.Equal(t, tc.want, f.explain().Run)
			assert.Equal(t, tc.needs, explain.RunMayWait(f.in))
			if tc.want == "" {
				assert.NotContains(t, f.text(t), "The run for the last reload")
				return
			}
			assert.Contains(t, f.text(t), "\nThe run for the last reload "+tc.want+".\n")
		})
	}
}

func TestOnlyCronJobsAreRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.explain()
	assert.False(t, explain.RunMayWait(f.in))
}
