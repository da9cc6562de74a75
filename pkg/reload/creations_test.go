package reload

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// newUnrecordedJob is a fixture whose Job asks for something and has neither a Record nor a stamp.
func newUnrecordedJob(t *testing.T) *jobFixture {
	t.Helper()
	j := newJobFixture(t, nil, nil)
	job := j.Stored()
	job.SetAnnotations(map[string]string{"reloader.stakater.com/auto": "true"})
	unstructured.RemoveNestedField(job.Object, "spec", "template", "metadata")
	return j
}

// No webhook stamps the creation, and the configuration changes before the loop reads it.
func TestChangeBehindACreationIsNotAdopted(t *testing.T) {
	t.Parallel()
	reloads := append([]string{"patch Job"}, reloadtest.RecreationSteps...)
	adopts := []string{"patch Job"}
	for name, tc := range map[string]struct {
		// live and past are versions of configmap/app: now, and when the Job was created, which is version 1.
		live, past func(j *jobFixture) digest.State
		err        error
		// listed is the version of the listing that brings the Job; empty if that is created later.
		listed string
		want   []string
	}{
		"modified": {
			live: func(j *jobFixture) digest.State { return j.At("new", "2") },
			past: func(j *jobFixture) digest.State { return j.At("old", "0") }, want: reloads,
		},
		"not its content": {
			live: func(j *jobFixture) digest.State { return j.At("old", "2") },
			past: func(j *jobFixture) digest.State { return j.At("old", "0") }, want: adopts,
		},
		"created, which does not trigger": {
			live: func(j *jobFixture) digest.State { return j.At("new", "2") },
			past: func(*jobFixture) digest.State { return digest.State{Absent: true} }, want: []string{"patch Job", "patch Job"},
		},
		"modified before": {live: func(j *jobFixture) digest.State { return j.At("new", "0") }, want: adopts},
		"the old version is not kept": {
			live: func(j *jobFixture) digest.State { return j.At("new", "2") },
			past: func(*jobFixture) digest.State { return digest.State{} }, err: errors.New("expired"), want: adopts,
		},
		"another storage with other revisions": {
			live: func(j *jobFixture) digest.State { return j.At("new", "2") },
			past: func(j *jobFixture) digest.State { return j.At("old", "2") }, want: adopts,
		},
		"the workload was there before the watch": {
			live: func(j *jobFixture) digest.State { return j.At("new", "2") }, listed: "1", want: adopts,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newUnrecordedJob(t)
			job := j.Stored()
			j.past = func(_ context.Context, namespace string, ref reference.Ref, version string) (digest.State, error) {
				require.NotNil(t, tc.past, "the old version does not matter")
				assert.Equal(t, []any{"shop", j.App, "1"}, []any{namespace, ref, version})
				return tc.past(j), tc.err
			}
			l := j.leader(t)
			j.report(workload.Summary{Kind: reloadtest.JobKind}, reloadtest.Summary(reloadtest.JobKind, job.Object), tc.listed)
			job.SetResourceVersion("3") // the Job controller has written the status
			j.States = map[reference.Ref]digest.State{j.App: tc.live(j)}
			for range 3 {
				j.reconcile(t, l)
				j.report(reloadtest.Summary(reloadtest.JobKind, job.Object), reloadtest.Summary(reloadtest.JobKind, j.Stored().Object), "")
			}
			assert.ElementsMatch(t, tc.want, j.Writes())
			assert.Equal(t, policy.Nothing, j.Due(t).Action)
			assert.Empty(t, l.state.Creations.Version(reloadtest.JobKey), "nothing is kept once there is a Record")
		})
	}
}

// The watch of ConfigMaps is behind the one of Jobs. What it shows was over before the Job was created.
func TestAdoptionOfNewWorkloadReadsLive(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		unread error
		listed string
		want   string
		writes []string
	}{
		"created while we watch":           {want: "live", writes: []string{"patch Job"}},
		"the configuration cannot be read": {unread: errors.New("away")},
		"there before the watch":           {listed: "5", want: "seen", writes: []string{"patch Job"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newUnrecordedJob(t)
			job := j.Stored()
			job.SetResourceVersion("5")
			l := j.leader(t)
			j.report(workload.Summary{Kind: reloadtest.JobKind}, reloadtest.Summary(reloadtest.JobKind, job.Object), tc.listed)
			states := map[string]digest.State{"live": j.At("live", "4"), "seen": j.At("seen", "3")}
			j.States, j.Unread = map[reference.Ref]digest.State{j.App: states["live"]}, tc.unread
			j.Seen = map[reference.Ref]digest.State{j.App: states["seen"]}
			j.reconcile(t, l)
			assert.Equal(t, tc.writes, j.Writes())
			assert.Equal(t, tc.unread != nil, l.state.Creations.Version(reloadtest.JobKey) != "", "kept for the retry")
			if tc.want != "" {
				j.States[j.App] = states[tc.want]
				assert.Equal(t, policy.Nothing, j.Due(t).Action, "it is the content that was recorded")
			}
		})
	}
}

// A workload can be deleted and created again at any time of a reconciliation.
func TestCreationDuringAReconciliationIsKept(t *testing.T) {
	t.Parallel()
	for name, course := range map[string]func(t *testing.T, j *jobFixture, l *loop, born func()){
		"behind the write of the Record": func(t *testing.T, j *jobFixture, l *loop, born func()) {
			t.Helper()
			j.API.After = func(call string) error {
				if call == "patch Job" {
					born()
				}
				return nil
			}
			j.reconcile(t, l)
			require.Equal(t, []string{"patch Job"}, j.Writes())
		},
		"behind the look at the workload, which is gone": func(t *testing.T, j *jobFixture, l *loop, born func()) {
			t.Helper()
			stored := maps.Clone(j.API.Objects)
			clear(j.API.Objects)
			j.looked = func() {
				maps.Copy(j.API.Objects, stored)
				born()
			}
			j.reconcile(t, l)
			require.Empty(t, j.Writes())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newUnrecordedJob(t)
			j.States = map[reference.Ref]digest.State{j.App: j.At("new", "0")}
			l := j.leader(t)
			l.state.Creations.Created(reloadtest.JobKey, "1")
			course(t, j, l, func() { l.state.Creations.Created(reloadtest.JobKey, "9") })
			assert.Equal(t, "9", l.state.Creations.Version(reloadtest.JobKey))
		})
	}
}

// A Job whose Record cannot be stored may take days.
func TestNothingIsKeptOfACreationWhoseRecordIsInMemory(t *testing.T) {
	t.Parallel()
	j := newUnrecordedJob(t)
	j.API.Before = refuseJobs
	j.States = map[reference.Ref]digest.State{j.App: j.At("new", "0")}
	l := j.leader(t)
	l.state.Creations.Created(reloadtest.JobKey, "1")
	j.reconcile(t, l)
	require.Contains(t, j.API.Calls, "patch Job")
	assert.Empty(t, l.state.Creations.Version(reloadtest.JobKey))
	j.API.Calls = nil
	j.reconcile(t, l)
	assert.Empty(t, j.API.Calls, "the Record is in memory")
}
