package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Another attempt at the reload knows the content of the Job under another digest key. It is the same Job, made when it was.
func TestAnotherAttemptLearnsTheDigestsOfARun(t *testing.T) {
	t.Parallel()
	var r runs
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}
	r.RecordJob(key, cronrun.Run{Job: "backup-1", After: "1", Content: "old"}, now)
	r.Require(key, DueRun)
	assert.True(t, r.HasRun(key, "old"), "the Job was made with this content")
	assert.False(t, r.HasRun(key, "new"), "no Job was made with this content")

	r.AddDigests(key, cronrun.Run{Job: "backup-1", After: "1", Content: "old", Same: []string{"new"}})
	assert.True(t, r.HasRun(key, "old"), "the content that the Job was made with remains")
	assert.True(t, r.HasRun(key, "new"), "the new digest is of the same content")
	assert.False(t, r.HasRun(key, "other"), "the attempt did not add this digest")
	assert.Equal(t, DueRun, r.Pending(key), "an attempt waives nothing")
	assert.Equal(t, 4*time.Second, r.Wait(key, "backup-2", now.Add(time.Second), 5*time.Second), "the next Job keeps its distance from the first attempt")

	assert.False(t, new(runs).HasRun(key, ""), "there is no Job")
}

func TestReloadIsJudgedOnce(t *testing.T) {
	t.Parallel()
	var r runs
	key, other := workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "other"}
	assert.True(t, r.FirstDecision(key, "1"), "the first look at reload 1")
	assert.False(t, r.FirstDecision(key, "1"), "reload 1 was looked at before")
	assert.True(t, r.FirstDecision(other, "1"), "each CronJob for itself")
	assert.True(t, r.FirstDecision(key, "2"), "the first look at reload 2")
	assert.Equal(t, NoRun, r.Pending(key))
	r.Require(key, DueRun)
	r.Forget(key)
	assert.True(t, r.FirstDecision(key, "2"), "all of the CronJob is forgotten")
	assert.Equal(t, NoRun, r.Pending(key))
	assert.False(t, r.FirstDecision(other, "1"), "the other CronJob is not forgotten")
}

func TestRunIsMadeForTheReloadThatFollows(t *testing.T) {
	t.Parallel()
	key, made := workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, cronrun.Run{Job: "backup-1", After: "1", Follows: "1", Content: "new"}
	for name, tc := range map[string]struct {
		last, due cronrun.Run
		want      bool
	}{
		"the reload follows the same one":     {made, cronrun.Run{After: "1", Follows: "1", Content: "other"}, true},
		"the reload was made since":           {made, cronrun.Run{After: "2", Follows: "2"}, false},
		"the Job was owed to the last reload": {cronrun.Run{Job: "backup-1", After: "1", Follows: "0"}, cronrun.Run{After: "1", Follows: "1"}, false},
		"no Job was made":                     {cronrun.Run{}, cronrun.Run{}, false},
	} {
		var r runs
		r.RecordJob(key, tc.last, time.Time{})
		got, ok := r.JobFor(key, tc.due)
		assert.Equal(t, tc.want, ok, name)
		if tc.want {
			assert.Equal(t, made, got)
		}
	}
}

// A content that comes back after another one was run gets a Job of another name: that of the first one is taken.
func TestJobMadeBeforeAnotherOne(t *testing.T) {
	t.Parallel()
	var r runs
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}
	before := func(job string) string {
		last, ok := r.MadeBefore(key, job)
		if !ok {
			return "none"
		}
		return last
	}
	assert.Equal(t, "none", before("backup-1"), "there is no Job")
	r.RecordJob(key, cronrun.Run{Job: "backup-1", After: "1"}, now)
	assert.Equal(t, "none", before("backup-1"), "it is the last one")
	r.RecordJob(key, cronrun.Run{Job: "backup-2", After: "1"}, now)
	assert.Equal(t, "backup-2", before("backup-1"))
	assert.Equal(t, "none", before("backup-2"), "it is the last one")
	assert.Equal(t, "none", before("backup-3"), "it was never made")
	r.RecordJob(key, cronrun.Run{Job: "backup-3", After: "2"}, now)
	assert.Equal(t, "none", before("backup-1"), "another reload has begun since")
	for i := range keptNames {
		r.RecordJob(key, cronrun.Run{Job: fmt.Sprint("again-", i), After: "2"}, now)
	}
	assert.Equal(t, "none", before("backup-3"), "no more names are kept, however often a content comes back")
	assert.Equal(t, fmt.Sprint("again-", keptNames-1), before("again-0"))
}

// A Job is made before its reload is stored: until then, the workload shows the last reload that the Job was made after.
func TestJobWhoseReloadIsNotStored(t *testing.T) {
	t.Parallel()
	var r runs
	key := workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}
	r.RecordJob(key, cronrun.Run{Job: "backup-1", After: "1", Replaces: "old"}, time.Time{})
	job, replaces := r.Unstamped(key, "1")
	assert.Equal(t, "backup-1", job)
	assert.Equal(t, "old", replaces)
	job, replaces = r.Unstamped(key, "2")
	assert.Empty(t, job+replaces, "its reload is stored, or a later one")
}

// Whether a Job is pending is proved, or not, by what is known best. A later reload makes the Job that an earlier leader may have made.
func TestPendingRun(t *testing.T) {
	t.Parallel()
	key := workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}
	for name, tc := range map[string]struct {
		required        []PendingRun
		want, following PendingRun
	}{
		"nothing":                          {nil, NoRun, NoRun},
		"of an earlier leader":             {[]PendingRun{UnprovenRun}, UnprovenRun, NoRun},
		"of this leader":                   {[]PendingRun{DueRun}, DueRun, DueRun},
		"of an earlier leader, and proved": {[]PendingRun{UnprovenRun, DueRun}, DueRun, DueRun},
		"of this leader, and before it":    {[]PendingRun{DueRun, UnprovenRun}, DueRun, DueRun},
	} {
		var r runs
		for _, pending := range tc.required {
			r.Require(key, pending)
		}
		assert.Equal(t, tc.want, r.Pending(key), name)
		r.Supersede(key)
		assert.Equal(t, tc.following, r.Pending(key), name+", and another reload follows")
	}
}

func TestWaitOfAJobBeginsOnce(t *testing.T) {
	t.Parallel()
	var r runs
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}
	assert.Equal(t, now, r.Postpone(key, "backup-1", now, 7*time.Second))
	assert.Zero(t, r.WaitForOthers(key, now), "none is pending yet")
	r.Require(key, DueRun)
	assert.Equal(t, 7*time.Second, r.WaitForOthers(key, now))
	later := now.Add(7 * time.Second)
	assert.Equal(t, now, r.Postpone(key, "backup-1", later, 9*time.Second))
	assert.Equal(t, 9*time.Second, r.WaitForOthers(key, later))
	assert.Equal(t, later, r.Postpone(key, "backup-2", later, 9*time.Second), "another Job")
	r.ClearPending(key)
	assert.Zero(t, r.WaitForOthers(key, later))
	assert.Equal(t, later.Add(time.Second), r.Postpone(key, "backup-2", later.Add(time.Second), 9*time.Second), "another wait")
}
