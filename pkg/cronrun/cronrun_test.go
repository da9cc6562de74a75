package cronrun_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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
	return cronrun.CronJob{Object: workload.Object{Kind: workload.CronJob(), Raw: map[string]any{
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
