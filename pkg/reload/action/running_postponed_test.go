package action

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// postponements counts the Events about runs that wait.
func (o *occupied) postponements() (n int) {
	for _, note := range o.out.Notes() {
		if strings.HasPrefix(note, "concurrencyPolicy is Forbid") {
			n++
		}
	}
	return n
}

// While a Job is active for hours, an object may change every few minutes.
func TestEachWaitOfARunIsReportedOnce(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	for _, content := range []string{"B", "C", "D", "C"} {
		o.change(t, content)
		o.looks(t, time.Minute)
	}
	assert.Equal(t, 1, o.postponements(), "one run is for all changes: %v", o.out.Notes())
	o.starts("scheduled")
	o.looks(t, time.Minute)
	o.change(t, "E")
	assert.Equal(t, 2, o.postponements(), "the Job that has started is the run for the changes before it: %v", o.out.Notes())
	o.active = nil
	o.looks(t, time.Hour)
	require.Len(t, o.jobs, 1)
	o.starts("long")
	o.change(t, "F")
	assert.Equal(t, 3, o.postponements(), "the run was made")
}

// A stamp may fail while the run waits, and the change may be taken back before the next attempt.
func TestWaitForAChangeThatIsTakenBackEnds(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	o.run(t, "B")
	o.run(t, "C")
	assert.Equal(t, 1, o.postponements(), "two attempts at one reload: %v", o.out.Notes())
	assert.Zero(t, o.inOrder(t), "the stamp before the change is the last one")
	o.change(t, "D")
	assert.Equal(t, 2, o.postponements(), "it is another run: %v", o.out.Notes())
}

// A Job is made for a content that is taken back before its stamp. That Job is active when the content from before it is to be run.
func TestRunOfAContentThatIsBackWaitsForTheJobBeforeIt(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	o.active = nil
	made := o.run(t, "B")
	require.Len(t, o.jobs, 1)
	o.starts(made)
	o.later()
	o.looks(t, time.Minute)
	require.Len(t, o.jobs, 1, "the other Job is active")
	assert.Equal(t, 1, o.postponements())
	o.active = nil
	o.looks(t, time.Minute)
	assert.Len(t, o.jobs, 2)
}

// A CronJob is deleted, and created again, while the answer to its stamp is under way. The watch shows that before the answer is there.
func TestRunOfADeletedCronJobIsNotThatOfTheNextOne(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	s, verdict := o.subject(t)
	require.Nil(t, o.actions.runs.runIfDue(t.Context(), &s, verdict, o.ring, o.statesOf("B")))
	require.True(t, s.Effects.NeedsRun)
	o.actions.state.Forget(s.Key)
	o.actions.Close(t.Context(), reloaded{s, verdict.Changes, record.LastReload{Time: o.now, Hash: "B", Cause: record.CauseConfigChange}, 1})

	o.uid, o.recorded, o.hash, o.active = "u2", "B", "B", nil
	o.last = &record.LastReload{Time: o.now, Hash: "B", Cause: record.CauseRelease}
	o.looks(t, time.Hour)
	assert.Empty(t, o.jobs, "nothing has changed since the creation")
	o.change(t, "C")
	assert.Len(t, o.jobs, 1)
}

// Without the permission to create Jobs, which is the default, the run cannot follow.
func TestRunThatMayNotBeMadeIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	o.tried = forbidden("Job")
	o.change(t, "B")
	assert.Zero(t, o.inOrder(t), "the Jobs are not looked at")
	require.Len(t, o.out.Notes(), 2, "%v", o.out.Notes())
	assert.Contains(t, o.out.Notes()[0], "the CronJob is not run at once, only its next run gets the new configuration: dry run of job backup-")
	assert.Zero(t, o.postponements())
}

// A policy may change its mind until the Job is made, and the permission was there when the wait began.
func TestWaitBeginsWithOneDryRun(t *testing.T) {
	t.Parallel()
	o := newOccupied(t)
	o.tried = freeze()
	o.change(t, "B")
	assert.Equal(t, 1, o.postponements())
	o.tried = forbidden("Job")
	o.looks(t, time.Minute)
	o.change(t, "C")
	o.tried = nil
	o.active = nil
	o.looks(t, time.Minute)
	assert.Len(t, o.jobs, 1)
	assert.Equal(t, 1, o.postponements())
}
