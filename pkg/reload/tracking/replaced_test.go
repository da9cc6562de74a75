package tracking

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// jobVersion is a Job for which Reloader reloads configmap/app, as it was at a resourceVersion.
func jobVersion(uid, at string, finished bool) workload.Summary {
	status := map[string]any{}
	if finished {
		status["conditions"] = []any{map[string]any{"type": "Complete", "status": "True"}}
	}
	return summaryOf(workload.Job(), map[string]any{
		"metadata": map[string]any{
			"namespace": "shop", "name": "import", "uid": uid, "resourceVersion": at,
			"annotations": map[string]any{"configmap.reloader.stakater.com/reload": "app"},
		},
		"status": status,
	})
}

// A listing delivers a workload that was deleted and created again as one change. It may track the same objects.
func TestChangeSettlesForAWorkloadThatAListingReplaces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after workload.Summary
		since         time.Duration
		settles       bool
	}{
		"a Deployment":               {before: version("u", "7", "configmaps"), after: version("v", "10", "configmaps"), settles: true},
		"the change has settled":     {before: version("u", "7", "configmaps"), after: version("v", "10", "configmaps"), since: time.Minute},
		"a Job from before":          {before: jobVersion("u", "7", false), after: jobVersion("v", "8", false), settles: true},
		"a Job that starts with it":  {before: jobVersion("u", "7", false), after: jobVersion("v", "10", false)},
		"the same Job, which starts": {before: jobVersion("u", "7", false), after: jobVersion("u", "10", false), settles: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reader := stakaterReader()
				reader.Dialects = append(reader.Dialects, reloadtest.Reader().Dialects...)
				l := standby(Options{Reader: reader, FollowJobs: true, Settle: time.Second})
				h := changesOf(l, tc.before.Kind)
				h(workload.Summary{Kind: tc.before.Kind}, tc.before)
				changed := time.Now()
				l.tracking.ConfigChanged(configstate.Event{
					Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app"}, Type: configstate.Modified, ResourceVersion: "9", Received: changed,
				})
				<-time.After(tc.since + time.Millisecond)
				h(tc.before, tc.after)
				assert.Equal(t, tc.settles, l.state.Changes.HasPending(tc.after.Key()))
				assert.Equal(t, tc.settles, l.state.Changes.BeginAttempt(tc.after.Key()).Last.Equal(changed))
			})
		})
	}
}

// The last reload of a Job is recorded when it has been created again; it may be looked at once more after it has finished.
func TestStateOfAJobThatIsLeftAloneIsForgottenWithItsEnd(t *testing.T) {
	t.Parallel()
	finished := jobVersion("u", "7", true)
	for name, tc := range map[string]struct {
		after     workload.Summary
		forgotten bool
	}{
		"deleted": {after: workload.Summary{Kind: finished.Kind}, forgotten: true},
		"another one of its name has finished, by a listing": {after: jobVersion("v", "9", true), forgotten: true},
		"another one of its name runs, by a listing":         {after: jobVersion("v", "9", false), forgotten: true},
		"changed": {after: jobVersion("u", "8", true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := standby(Options{Reader: stakaterReader(), FollowJobs: true, Ignores: func(s workload.Summary, pending bool) bool {
				return s.Finished() && !pending
			}})
			now := time.Now()
			l.state.Writes.Stamped(finished.Key(), 1, now)
			l.state.Deferrals.Failed(finished.Key(), state.Deferral{Until: now.Add(time.Second)}, now)
			l.backoff.When(finished.Key(), state.NeedsUser)
			changesOf(l, finished.Kind)(finished, tc.after)
			assert.Equal(t, tc.forgotten, l.state.Writes.StampedAt(finished.Key()).IsZero())
			assert.Equal(t, tc.forgotten, l.state.Deferrals.WaitToWrite(finished.Key(), now) == 0, "its re-creation waits no longer")
			assert.Equal(t, !tc.forgotten, l.backoff.Failing(finished.Key()), "another one has failed in no attempt")
		})
	}
}

// A change that is pending belongs to the Job that it came for.
func TestFinishedJobThatAListingBringsIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := standby(Options{Reader: stakaterReader(), FollowJobs: true, Ignores: func(s workload.Summary, pending bool) bool {
		return s.Finished() && !pending
	}})
	before := jobVersion("u", "7", false)
	h := changesOf(l, before.Kind)
	h(workload.Summary{Kind: before.Kind}, before)
	l.state.Changes.EventArrived(before.Key(), time.Now())
	h(before, jobVersion("v", "9", true))
	assert.False(t, l.tracking.index.Has(before.Key()), "the finished Job is not tracked")
	assert.False(t, l.state.Changes.HasPending(before.Key()), "the change of the Job before it is forgotten")
}

// While the watch of workloads fails, what they track now may have changed before they were read.
func TestChangeSettlesForAWorkloadThatIsReadLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _, keys := trackingWithFailing(t, failing{"fleets.example.com": true}, liveReader{lists: "fresh"}, nil)
		l.tracking.entries.recent = index.NewRecent(time.Second)
		changed := time.Now()
		l.tracking.ConfigChanged(configstate.Event{
			Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "fresh"}, Type: configstate.Modified, Received: changed,
		})
		<-time.After(time.Millisecond)
		_, found := l.tracking.Get(t.Context(), keys[1])
		require.True(t, found, "the workload is read live")
		assert.Equal(t, changed, l.state.Changes.BeginAttempt(keys[1]).Last)
	})
}

// Etcd is restored from a backup without a reload that the watch has not delivered yet: the listing brings the workload as it is known, and
// nothing else would show that the reload is lost.
func TestListingWithoutOurWriteQueuesTheWorkload(t *testing.T) {
	t.Parallel()
	at := func(generation int64) workload.Summary {
		return summaryOf(workload.Deployment(), map[string]any{"metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "7", "generation": generation,
			"annotations": map[string]any{"configmap.reloader.stakater.com/reload": "app"},
		}})
	}
	for name, tc := range map[string]struct {
		wrote, listed int64
		queued        bool
	}{
		"nothing was written":            {listed: 3},
		"the write is in it":             {wrote: 3, listed: 3},
		"the write is lost":              {wrote: 4, listed: 3, queued: true},
		"an earlier write is in it, too": {wrote: 2, listed: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, q := leading(t, Options{Reader: stakaterReader()})
			known := at(tc.listed)
			l.state.Writes.Stamped(known.Key(), tc.wrote, time.Now().Add(-time.Hour))
			changesOf(l, known.Kind)(known, known)
			assert.Equal(t, tc.queued, q.Len() == 1)
		})
	}
}
