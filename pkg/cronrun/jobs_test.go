package cronrun_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// reloadedAt is when the CronJobs of the tests were reloaded.
var reloadedAt = time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)

var forbid = map[string]any{"concurrencyPolicy": "Forbid"}

// made is a Job of a CronJob from before its reload.
type made struct {
	// name is "run" by default, owner the UID of the tests' CronJob, hash "old".
	name, owner, hash string
	// created is its age at the reload, before which it was created by default.
	created    time.Duration
	conditions map[string]string
	deleting   bool
}

func (m made) job() cronrun.Job {
	word := func(text, usual string) string {
		if text == "" {
			return usual
		}
		return text
	}
	age := m.created
	if age == 0 {
		age = -time.Minute
	}
	metadata := map[string]any{
		"name": word(m.name, "run"), "uid": word(m.name, "run") + "-uid", "creationTimestamp": reloadedAt.Add(age).Format(time.RFC3339),
		"ownerReferences": []any{map[string]any{"uid": word(m.owner, "u1")}},
	}
	if m.deleting {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	annotations := map[string]any{hash: word(m.hash, "old")}
	if m.hash == "-" {
		delete(annotations, hash)
	}
	var conditions []any
	for kind, status := range m.conditions {
		conditions = append(conditions, map[string]any{"type": kind, "status": status})
	}
	return cronrun.JobOf(unstructured.Unstructured{Object: map[string]any{
		"metadata": metadata, "status": map[string]any{"conditions": conditions},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}},
	}}, hash)
}

func complete() map[string]string { return map[string]string{"Complete": "True"} }

// reloaded is the view of a CronJob whose template with a hash is from a reload that has changed a ConfigMap.
func reloaded(name string) stamp.View {
	last := record.LastReload{
		Time: reloadedAt, Hash: "new", Cause: record.CauseConfigChange, Changes: []record.Change{{Ref: "configmap/" + name, Type: record.Modified}},
	}
	return stamp.View{Intent: intent(), Managed: stamp.Managed{stamp.Hash: "new", stamp.LastReload: last.String()}}
}

func TestActiveJobs(t *testing.T) {
	t.Parallel()
	jobs := []cronrun.Job{
		made{name: "running"}.job(), made{name: "of another", owner: "u2"}.job(), made{name: "complete", conditions: complete()}.job(),
		made{name: "failed", conditions: map[string]string{"Failed": "True"}}.job(),
		made{name: "suspended", conditions: map[string]string{"Suspended": "True"}}.job(),
		made{name: "failing", conditions: map[string]string{"Failed": "False"}}.job(), made{name: "going", deleting: true}.job(),
		made{name: "last pods end", conditions: map[string]string{"SuccessCriteriaMet": "True"}}.job(),
	}
	active := func(policy string) []cronrun.ActiveJob {
		return cronJob("backup", map[string]any{"concurrencyPolicy": policy}).Others(stamp.View{}, jobs).Active
	}
	want := []cronrun.ActiveJob{
		{Name: "running", UID: "running-uid"},
		{Name: "suspended", UID: "suspended-uid"},
		{Name: "failing", UID: "failing-uid"},
		{Name: "last pods end", UID: "last pods end-uid"},
	}
	assert.Equal(t, want, active("Replace"), "one that goes is not deleted again")
	want = slices.Insert(want, 3, cronrun.ActiveJob{Name: "going", UID: "going-uid"})
	assert.Equal(t, want, active("Forbid"), "it may have pods until it is gone")
}

func TestJobOfTheRunIsFoundByItsName(t *testing.T) {
	t.Parallel()
	c, ended := cronJob("backup", nil), complete()
	assert.True(t, c.Others(stamp.View{}, []cronrun.Job{made{name: "another"}.job(), made{conditions: ended}.job()}, "other", "run").Made)
	assert.False(t, c.Others(stamp.View{}, []cronrun.Job{made{owner: "u2"}.job()}, "run").Made, "it belongs to another CronJob")
	assert.False(t, c.Others(stamp.View{}, []cronrun.Job{made{name: "another"}.job()}, "run").Made, "it has another name")
	assert.False(t, c.Others(stamp.View{}, nil, "run").Made)
}

func TestJobsOfOtherObjects(t *testing.T) {
	t.Parallel()
	assert.True(t, made{owner: "u2"}.job().IsOwned())
	assert.False(t, cronrun.JobOf(unstructured.Unstructured{Object: map[string]any{}}, hash).IsOwned())
	assert.True(t, cronJob("backup", nil).Owns(made{}.job()))
	assert.False(t, cronJob("backup", nil).Owns(made{owner: "u2"}.job()))
}

// A Job that is active since before the stamp, and is not of the stamped template, has kept the run from being made.
func TestOthersProveThatTheRunHasWaited(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job  made
		want bool
	}{
		"active since before":           {want: true},
		"of a template without a stamp": {job: made{hash: "-"}, want: true},
		"ended":                         {job: made{conditions: complete()}},
		"of another CronJob":            {job: made{owner: "u2"}},
		"with the stamped template":     {job: made{hash: "new"}},
		"created after the reload":      {job: made{created: time.Minute}},
		"created in the same second":    {job: made{created: -500 * time.Millisecond}},
	} {
		others := cronJob("backup", forbid).Others(reloaded("app"), []cronrun.Job{tc.job.job()}, "other")
		assert.Equal(t, tc.want, others.Waited, name)
		assert.Equal(t, tc.want, others.ProveWait(), name)
		others = cronJob("backup", forbid).Others(reloaded("app"), []cronrun.Job{tc.job.job(), made{name: "other", conditions: complete()}.job()}, "other")
		assert.False(t, others.ProveWait(), name+", and the Job of the run exists")
	}
}

func TestJobThatHasStartedWithTheStampedTemplate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job  made
		want string
	}{
		"created after the reload":    {job: made{hash: "new", created: time.Minute}, want: "run"},
		"ended":                       {job: made{hash: "new", created: time.Minute, conditions: complete()}, want: "run"},
		"created in the same second":  {job: made{hash: "new", created: -500 * time.Millisecond}, want: "run"},
		"created before the reload":   {job: made{hash: "new"}},
		"of the template before":      {job: made{created: time.Minute}},
		"of another CronJob":          {job: made{hash: "new", created: time.Minute, owner: "u2"}},
		"of another one than a later": {job: made{hash: "-", created: time.Minute}},
	} {
		assert.Equal(t, tc.want, cronJob("backup", forbid).Others(reloaded("app"), []cronrun.Job{tc.job.job()}).Started, name)
	}
	unexplained := reloaded("app")
	unexplained.Managed[stamp.Hash] = "other"
	others := cronJob("backup", forbid).Others(unexplained, []cronrun.Job{made{hash: "other", created: time.Minute}.job(), made{}.job()})
	assert.Empty(t, others.Started, "when the template was stamped is not known")
	assert.False(t, others.Waited)
}

func TestMayWait(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec, status map[string]any
		want         bool
	}{
		"Forbid":                      {spec: forbid, want: true},
		"suspended":                   {spec: map[string]any{"concurrencyPolicy": "Forbid", "suspend": true}},
		"Replace":                     {spec: map[string]any{"concurrencyPolicy": "Replace"}},
		"no policy":                   {},
		"scheduled since the reload":  {spec: forbid, status: map[string]any{"lastScheduleTime": "2026-01-02T03:05:00Z"}},
		"scheduled before the reload": {spec: forbid, status: map[string]any{"lastScheduleTime": "2026-01-02T03:04:00Z"}, want: true},
	} {
		c := cronJob("backup", tc.spec)
		c.Raw["status"] = tc.status
		assert.Equal(t, tc.want, c.MayWait(reloadedAt), name)
	}
}

// Whatever has no memory of the reload finds that its run waits by what is stored.
func TestRunOfTheLastReloadWaits(t *testing.T) {
	t.Parallel()
	long := made{name: "long"}.job()
	for name, tc := range map[string]struct {
		changed string
		change  func(c cronrun.CronJob, view stamp.View)
		jobs    []cronrun.Job
		waits   bool
	}{
		"another Job is active":          {jobs: []cronrun.Job{long}, waits: true},
		"none is active":                 {jobs: []cronrun.Job{made{conditions: complete()}.job()}},
		"the change stamps only":         {changed: "listed", jobs: []cronrun.Job{long}},
		"the run was made":               {jobs: []cronrun.Job{long, made{name: cronJob("backup", nil).JobName("", "new"), conditions: complete()}.job()}},
		"one has started with the stamp": {jobs: []cronrun.Job{long, made{hash: "new", created: time.Minute}.job()}},
		"the schedule has started one": {jobs: []cronrun.Job{long}, change: func(c cronrun.CronJob, _ stamp.View) {
			c.Raw["status"] = map[string]any{"lastScheduleTime": "2026-01-02T03:05:00Z"}
		}},
		"the reload is of another CronJob": {jobs: []cronrun.Job{long}, change: func(c cronrun.CronJob, _ stamp.View) {
			c.Raw["metadata"].(map[string]any)["creationTimestamp"] = "2026-01-02T03:05:00Z"
		}},
		"the template is of another reload": {jobs: []cronrun.Job{long}, change: func(_ cronrun.CronJob, view stamp.View) {
			view.Managed[stamp.Hash] = "other"
		}},
		"there was no reload": {jobs: []cronrun.Job{long}, change: func(_ cronrun.CronJob, view stamp.View) {
			delete(view.Managed, stamp.LastReload)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := "app"
			if tc.changed != "" {
				changed = tc.changed
			}
			c, view := cronJob("backup", forbid), reloaded(changed)
			if tc.change != nil {
				tc.change(c, view)
			}
			var want []cronrun.ActiveJob
			if tc.waits {
				require.True(t, c.MayWaitForLast(view))
				want = []cronrun.ActiveJob{{Name: "long", UID: "long-uid"}}
			}
			assert.Equal(t, want, c.WaitsFor(view, tc.jobs))
		})
	}
}
