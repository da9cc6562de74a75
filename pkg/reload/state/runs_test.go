package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Another attempt at the reload knows the content of the Job under another digest of. It is the same Job, made when it was.
func TestAnotherAttemptLearnsTheDigestsOfARun(t *testing.T) {
	t.Parallel()
	var r runs
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	of := CronJob{workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, "u1"}
	r.RecordJob(of, cronrun.Run{Job: "backup-1", After: "1", Content: "old"}, now)
	r.Require(of, DueRun)
	assert.True(t, r.HasRun(of, "old"), "the Job was made with this content")
	assert.False(t, r.HasRun(of, "new"), "no Job was made with this content")

	r.AddDigests(of, cronrun.Run{Job: "backup-1", After: "1", Content: "old", Same: []string{"new"}})
	assert.True(t, r.HasRun(of, "old"), "the content that the Job was made with remains")
	assert.True(t, r.HasRun(of, "new"), "the new digest is of the same content")
	assert.False(t, r.HasRun(of, "other"), "the attempt did not add this digest")
	assert.Equal(t, DueRun, r.Pending(of), "an attempt waives nothing")
	assert.Equal(t, 4*time.Second, r.Wait(of, "backup-2", now.Add(time.Second), 5*time.Second), "the next Job keeps its distance from the first attempt")

	assert.False(t, new(runs).HasRun(of, ""), "there is no Job")
}

func TestReloadIsJudgedOnce(t *testing.T) {
	t.Parallel()
	var r runs
	of, other := CronJob{workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, "u1"}, CronJob{workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "other"}, "u1"}
	assert.True(t, r.FirstDecision(of, "1"), "the first look at reload 1")
	assert.False(t, r.FirstDecision(of, "1"), "reload 1 was looked at before")
	assert.True(t, r.FirstDecision(other, "1"), "each CronJob for itself")
	assert.True(t, r.FirstDecision(of, "2"), "the first look at reload 2")
	assert.Equal(t, NoRun, r.Pending(of))
	r.Require(of, DueRun)
	r.Forget(of.Key)
	assert.True(t, r.FirstDecision(of, "2"), "all of the CronJob is forgotten")
	assert.Equal(t, NoRun, r.Pending(of))
	assert.False(t, r.FirstDecision(other, "1"), "the other CronJob is not forgotten")
}

func TestRunIsMadeForTheReloadThatFollows(t *testing.T) {
	t.Parallel()
	of, made := CronJob{workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, "u1"}, cronrun.Run{Job: "backup-1", After: "1", Follows: "1", Content: "new"}
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
		r.RecordJob(of, tc.last, time.Time{})
		got, ok := r.JobFor(of, tc.due)
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
	of := CronJob{workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, "u1"}
	before := func(job string) string {
		last, ok := r.MadeBefore(of, job)
		if !ok {
			return "none"
		}
		return last
	}
	assert.Equal(t, "none", before("backup-1"), "there is no Job")
	r.RecordJob(of, cronrun.Run{Job: "backup-1", After: "1"}, now)
	assert.Equal(t, "none", before("backup-1"), "it is the last one")
	r.RecordJob(of, cronrun.Run{Job: "backup-2", After: "1"}, now)
	assert.Equal(t, "backup-2", before("backup-1"))
	assert.Equal(t, "none", before("backup-2"), "it is the last one")
	assert.Equal(t, "none", before("backup-3"), "it was never made")
	r.RecordJob(of, cronrun.Run{Job: "backup-3", After: "2"}, now)
	assert.Equal(t, "none", before("backup-1"), "another reload has begun since")
	for i := range keptNames {
		r.RecordJob(of, cronrun.Run{Job: fmt.Sprint("again-", i), After: "2"}, now)
	}
	assert.Equal(t, "none", before("backup-3"), "no more names are kept, however often a content comes back")
	assert.Equal(t, fmt.Sprint("again-", keptNames-1), before("again-0"))
}

// A Job is made before its reload is stored: until then, the workload shows the last reload that the Job was made after.
func TestJobWhoseReloadIsNotStored(t *testing.T) {
	t.Parallel()
	var r runs
	of := CronJob{workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, "u1"}
	r.RecordJob(of, cronrun.Run{Job: "backup-1", After: "1", Replaces: "old"}, time.Time{})
	job, replaces := r.Unstamped(of, "1")
	assert.Equal(t, "backup-1", job)
	assert.Equal(t, "old", replaces)
	job, replaces = r.Unstamped(of, "2")
	assert.Empty(t, job+replaces, "its reload is stored, or a later one")
}

// Whether a Job is pending is proved, or not, by what is known best. A later reload makes the Job that an earlier leader may have made.
func TestPendingRun(t *testing.T) {
	t.Parallel()
	of := CronJob{workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, "u1"}
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
			r.Require(of, pending)
		}
		assert.Equal(t, tc.want, r.Pending(of), name)
		r.Supersede(of)
		assert.Equal(t, tc.following, r.Pending(of), name+", and another reload follows")
	}
}

func TestWaitOfARunBeginsOnce(t *testing.T) {
	t.Parallel()
	var r runs
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	of := CronJob{workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, "u1"}
	postpone := func(reason RunWait, at, since time.Time, begins bool, message string) {
		t.Helper()
		gotSince, gotBegins := r.Postpone(of, reason, at, time.Minute)
		assert.Equal(t, since, gotSince, message)
		assert.Equal(t, begins, gotBegins, message)
		assert.Equal(t, time.Minute, r.WaitForOthers(of, at), message)
		assert.True(t, r.Waits(of, reason), message)
	}
	assert.Zero(t, r.WaitForOthers(of, now), "none waits yet")
	later := now.Add(time.Minute)
	postpone(ProofWait, now, now, true, "it begins")
	postpone(ProofWait, now, now, false, "at the same time")
	postpone(ProofWait, later, now, false, "it goes on")
	postpone(JobsWait, later, later, true, "it waits for something else")
	postpone(JobsWait, later.Add(time.Second), later, false, "it goes on")
	for name, ends := range map[string]func(){
		"it is not needed":    func() { r.ClearPending(of) },
		"it was not needed":   func() { r.EndWait(of) },
		"its stamp has come":  func() { r.Answered(of) },
		"the Job is made":     func() { r.RecordJob(of, cronrun.Run{Job: "backup-1"}, later) },
		"another one follows": func() { r.Require(of, UnprovenRun); r.Supersede(of) },
	} {
		r.Postpone(of, JobsWait, later, time.Minute)
		ends()
		assert.Zero(t, r.WaitForOthers(of, later), name)
		assert.False(t, r.Waits(of, JobsWait), name)
		later = later.Add(time.Minute)
		postpone(JobsWait, later, later, true, name+": the next one is another wait")
		r.EndWait(of)
	}
}

// What ends late for a CronJob may be recorded after the watch has shown its deletion.
func TestCronJobThatIsCreatedAgainIsAnotherOne(t *testing.T) {
	t.Parallel()
	var r runs
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := CronJob{workload.Key{Kind: "batch/v1/CronJob", Namespace: "shop", Name: "backup"}, "u1"}
	after := CronJob{before.Key, "u2"}
	r.Forget(before.Key)
	r.RecordJob(before, cronrun.Run{Job: "backup-1", Content: "new", Replaces: "old"}, now)
	r.Require(before, DueRun)
	r.Postpone(before, JobsWait, now, time.Hour)
	assert.Equal(t, DueRun, r.Pending(before))
	assert.Equal(t, NoRun, r.Pending(after))
	assert.Zero(t, r.WaitForOthers(after, now))
	assert.Zero(t, r.Wait(after, "backup-2", now, time.Hour))
	assert.False(t, r.HasRun(after, "new"))
	_, made := r.JobFor(after, cronrun.Run{})
	assert.False(t, made)
	_, replaces := r.Unstamped(after, "")
	assert.Empty(t, replaces)
	r.ClearPending(after)
	assert.Equal(t, DueRun, r.Pending(before))
	r.Require(after, UnprovenRun)
	assert.Equal(t, UnprovenRun, r.Pending(after))
	assert.Equal(t, NoRun, r.Pending(before))
}
