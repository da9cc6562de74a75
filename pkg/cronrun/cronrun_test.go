package cronrun_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

const hash = "pod-reloader.cs.sap.com/config-hash"

// cronJob is one with further fields in its spec.
func cronJob(name string, spec map[string]any) cronrun.CronJob {
	all := map[string]any{"jobTemplate": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "backup"}, "annotations": map[string]any{"team": "a"}},
		"spec": map[string]any{"fieldOfTheFuture": int64(1), "template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{hash: "old"}},
		}},
	}}
	for key, value := range spec {
		all[key] = value
	}
	return cronrun.CronJob{Object: workload.Object{Raw: map[string]any{
		"metadata": map[string]any{"name": name, "namespace": "shop", "uid": "u1"}, "spec": all,
	}}}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec      map[string]any
		active    int
		want      cronrun.Action
		exclusive bool
	}{
		"nothing is said":             {active: 1, want: cronrun.Create},
		"Allow":                       {spec: map[string]any{"concurrencyPolicy": "Allow"}, active: 1, want: cronrun.Create},
		"Forbid, none active":         {spec: map[string]any{"concurrencyPolicy": "Forbid"}, want: cronrun.Create, exclusive: true},
		"Forbid, one active":          {spec: map[string]any{"concurrencyPolicy": "Forbid"}, active: 1, want: cronrun.Wait, exclusive: true},
		"Replace, none active":        {spec: map[string]any{"concurrencyPolicy": "Replace"}, want: cronrun.Create, exclusive: true},
		"Replace, one active":         {spec: map[string]any{"concurrencyPolicy": "Replace"}, active: 1, want: cronrun.Replace, exclusive: true},
		"suspended":                   {spec: map[string]any{"suspend": true}, want: cronrun.Skip},
		"suspended, Forbid, active":   {spec: map[string]any{"suspend": true, "concurrencyPolicy": "Forbid"}, active: 1, want: cronrun.Skip},
		"suspended is not a boolean":  {spec: map[string]any{"suspend": "yes"}, want: cronrun.Create},
		"not suspended, said in full": {spec: map[string]any{"suspend": false}, want: cronrun.Create},
	} {
		assert.Equal(t, tc.want, cronJob("backup", tc.spec).Decide(tc.active), name)
		assert.Equal(t, tc.exclusive, cronJob("backup", tc.spec).Exclusive(), name)
	}
}

func TestActive(t *testing.T) {
	t.Parallel()
	job := func(name, owner string, status map[string]any, deleted bool) unstructured.Unstructured {
		metadata := map[string]any{"name": name, "uid": name + "-uid", "ownerReferences": []any{map[string]any{"uid": owner}}}
		if deleted {
			metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}
		return unstructured.Unstructured{Object: map[string]any{"metadata": metadata, "status": status}}
	}
	condition := func(kind, status string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status}}}
	}
	want := []cronrun.ActiveJob{
		{Name: "running", UID: "running-uid"},
		{Name: "suspended", UID: "suspended-uid"},
		{Name: "failing", UID: "failing-uid"},
		{Name: "last pods end", UID: "last pods end-uid"},
	}
	jobs := []unstructured.Unstructured{
		job("running", "u1", nil, false), job("of another", "u2", nil, false), job("complete", "u1", condition("Complete", "True"), false),
		job("failed", "u1", condition("Failed", "True"), false), job("suspended", "u1", condition("Suspended", "True"), false),
		job("failing", "u1", condition("Failed", "False"), false), job("going", "u1", nil, true),
		job("last pods end", "u1", condition("SuccessCriteriaMet", "True"), false),
	}
	assert.Equal(t, want, cronJob("backup", map[string]any{"concurrencyPolicy": "Replace"}).Active(jobs), "one that goes is not deleted again")
	want = slices.Insert(want, 3, cronrun.ActiveJob{Name: "going", UID: "going-uid"})
	assert.Equal(t, want, cronJob("backup", map[string]any{"concurrencyPolicy": "Forbid"}).Active(jobs), "it may have pods until it is gone")
}

func TestHasFindsAJobOfTheCronJobByItsName(t *testing.T) {
	t.Parallel()
	job := func(name, owner string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"name": name, "ownerReferences": []any{map[string]any{"uid": owner}},
		}}}
	}
	c := cronJob("backup", nil)
	assert.True(t, c.Has([]unstructured.Unstructured{job("another", "u1"), job("run", "u1")}, "run"), "the second Job is it")
	assert.False(t, c.Has([]unstructured.Unstructured{job("run", "u2")}, "run"), "it belongs to another CronJob")
	assert.False(t, c.Has([]unstructured.Unstructured{job("another", "u1")}, "run"), "it has another name")
	assert.False(t, c.Has(nil, "run"), "there are no Jobs")
}

func TestJobNameIsThatOfTheReload(t *testing.T) {
	t.Parallel()
	c := cronJob("backup", nil)
	assert.Equal(t, c.JobName("a", "b"), cronJob("backup", nil).JobName("a", "b"))
	assert.NotEqual(t, c.JobName("a", "b"), c.JobName("ab", ""))
	assert.NotEqual(t, c.JobName("a"), c.JobName("b"))
	assert.Regexp(t, `^backup-[0-9a-f]{10}$`, c.JobName("a"))
	long := cronJob(strings.Repeat("x", 51)+"."+strings.Repeat("y", 100), nil)
	assert.Regexp(t, `^x{51}-[0-9a-f]{10}$`, long.JobName("a"), "it fits into a label")
}

func TestJobIsThatOfTheTemplate(t *testing.T) {
	t.Parallel()
	c := cronJob("backup", nil)
	job := c.Job("backup-1", hash, "new")
	assert.Equal(t, map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{
			"name": "backup-1", "namespace": "shop", "labels": map[string]any{"app": "backup"},
			"annotations": map[string]any{"team": "a", "cronjob.kubernetes.io/instantiate": "manual"},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "batch/v1", "kind": "CronJob", "name": "backup", "uid": "u1", "controller": true,
			}},
		},
		"spec": map[string]any{"fieldOfTheFuture": int64(1), "template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{hash: "new"}},
		}},
	}, job.Object)
	assert.Equal(t, cronJob("backup", nil), c, "the CronJob stays as it is")
	bare := cronJob("backup", map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{}}}})
	assert.Equal(t, map[string]any{"template": map[string]any{}}, bare.Job("x", hash, "new").Object["spec"], "without a hash none is added")
}

// A Job that is active since before the stamp, and is not of the stamped template, has kept the run from being made.
func TestHasWaited(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	for name, tc := range map[string]struct {
		owner, hash string
		created     time.Duration
		ended       bool
		want        bool
	}{
		"active since before":           {owner: "u1", hash: "old", created: -time.Minute, want: true},
		"of a template without a stamp": {owner: "u1", created: -time.Minute, want: true},
		"ended":                         {owner: "u1", hash: "old", created: -time.Minute, ended: true},
		"of another CronJob":            {owner: "u2", hash: "old", created: -time.Minute},
		"with the stamped template":     {owner: "u1", hash: "new", created: -time.Minute},
		"created after the reload":      {owner: "u1", hash: "old", created: time.Minute},
		"created in the same second":    {owner: "u1", hash: "old", created: -500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{
					"name": "run", "ownerReferences": []any{map[string]any{"uid": tc.owner}},
					"creationTimestamp": since.Add(tc.created).Format(time.RFC3339),
				},
				"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{hash: tc.hash}}}},
			}}
			if tc.ended {
				job.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
			}
			c := cronJob("backup", map[string]any{"concurrencyPolicy": "Forbid"})
			assert.Equal(t, tc.want, c.HasWaited([]unstructured.Unstructured{job}, hash, "new", since))
		})
	}
}

func TestMayWait(t *testing.T) {
	t.Parallel()
	forbid := map[string]any{"concurrencyPolicy": "Forbid"}
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cronJob("backup", tc.spec)
			c.Raw["status"] = tc.status
			assert.Equal(t, tc.want, c.MayWait(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		})
	}
}
