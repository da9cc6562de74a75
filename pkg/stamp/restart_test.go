package stamp

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// rollout returns a world with an Argo Rollout that was stamped, and whose ConfigMap has changed since.
func rollout(t *testing.T) *world {
	t.Helper()
	w := started(t)
	w.set(cm("a"), "A again")
	w.quiesce()
	kind, err := workload.ParseKind("argoproj.io/v1alpha1/Rollout=spec.template")
	require.NoError(t, err)
	w.kind = kind
	changed(w)
	return w
}

// restarted is the write of the loop that restarts the pods, for the state that it has read.
func (w *world) restarted(raw map[string]any) {
	hash := w.managed()[Hash]
	verdict := w.verdict()
	last := policy.NewLastReload(verdict.Changes, w.inputs(nil).Now, w.managed()[LastReload])
	last.Hash, last.Restarted, last.Generation = record.HashName(hash), true, w.object().Generation()
	w.setManaged(raw, Record, w.liveRecord(true).String())
	w.setManaged(raw, LastReload, last.String())
	raw["spec"].(map[string]any)["restartAt"] = last.Time.Format(time.RFC3339)
}

// verdict is that of the loop.
func (w *world) verdict() policy.Verdict {
	view := w.view()
	return policy.Assess(policy.Input{
		Namespace: "test", Intent: view.Intent, Required: view.Required, Known: view.Known(), Ring: w.ring, Current: w.states(view.Intent.Refs()),
	}).Verdict
}

// A restart cannot be refused: whatever the webhook reads, the pods restart. The Record and the explanation are stored with it.
func TestRestartIsRecordedWithWhatTheWebhookReads(t *testing.T) {
	t.Parallel()
	both := []record.Change{{Ref: "configmap/a", Type: record.Modified}, {Ref: "secret/a", Type: record.Modified}}
	for name, c := range map[string]struct {
		// meanwhile happens between the read of the loop and that of the webhook.
		meanwhile func(*world)
		changes   []record.Change
		// due says that a reload is due afterwards.
		due     bool
		warning string
	}{
		"the state of the loop":              {meanwhile: func(*world) {}, changes: both[:1]},
		"the object has changed once more":   {meanwhile: func(w *world) { w.set(cm("a"), "once more") }, changes: both[:1]},
		"another object has changed as well": {meanwhile: func(w *world) { w.set(secret("a"), "new") }, changes: both},
		"the object has changed back":        {meanwhile: func(w *world) { w.set(cm("a"), "A again") }, changes: both[:1]},
		"its clock is five minutes ahead":    {meanwhile: func(w *world) { w.rv += 300 }, changes: both[:1]},
		"the object cannot be read": {
			meanwhile: func(w *world) { w.set(cm("a"), "once more"); w.unreadable = true },
			changes:   both[:1], due: true, warning: "the API server is down",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rollout(t)
			before, template := w.managed(), w.restarts
			require.Nil(t, w.write(func(raw map[string]any) { w.restarted(raw); c.meanwhile(w) }))
			assert.True(t, w.managed().sameStamp(before), "the template stays as it is")
			assert.Equal(t, template, w.restarts)
			last, err := lastOf(w)
			require.NoError(t, err)
			assert.Equal(t, c.changes, last.Changes, "the restart is explained")
			assert.Equal(t, before[Hash], last.Hash)
			assert.Len(t, last.Before, 1, "the reload before it is kept")
			if c.warning == "" {
				assert.Empty(t, w.result.Warnings)
			} else {
				assert.Contains(t, w.result.Warnings[0], c.warning)
			}
			w.unreadable = false
			assert.Equal(t, c.due, w.verdict().Action == policy.Reload, "the pods start with what was read last before the write")
		})
	}
}

// Another webhook comes in between, while the configuration goes on changing: the explanation keeps its time.
func TestRestartIsRecordedInTheSecondPass(t *testing.T) {
	t.Parallel()
	w := rollout(t)
	w.other = func(raw map[string]any) {
		annotate(raw, "other", "1")
		w.set(secret("a"), "between the passes")
	}
	var at time.Time
	require.Nil(t, w.write(func(raw map[string]any) {
		w.restarted(raw)
		at = w.inputs(nil).Now
		w.set(cm("a"), "before the first pass")
	}))
	last, err := lastOf(w)
	require.NoError(t, err)
	assert.Equal(t, at, last.Time)
	assert.Len(t, last.Changes, 2)
	assert.Equal(t, policy.Nothing, w.verdict().Action)
}

// The Record and the explanation of a write that restarts nothing count only where they are those of the live state.
func TestOnlyARestartIsRecordedWithAnotherState(t *testing.T) {
	t.Parallel()
	restartAt := func(raw map[string]any) map[string]any { return raw["spec"].(map[string]any) }
	for name, spoil := range map[string]func(w *world, raw map[string]any){
		"the write restarts nothing": func(_ *world, raw map[string]any) { delete(restartAt(raw), "restartAt") },
		"the time is that of before": func(w *world, raw map[string]any) {
			restartAt(raw)["restartAt"] = w.stored["spec"].(map[string]any)["restartAt"]
		},
		"the time is removed":       func(_ *world, raw map[string]any) { restartAt(raw)["restartAt"] = "" },
		"the kind knows no restart": func(w *world, _ map[string]any) { w.kind = workload.Deployment() },
		"the explanation is an old one": func(w *world, raw map[string]any) {
			last, err := record.ParseLastReload(w.managedOf(raw)[LastReload])
			require.NoError(t, err)
			last.Generation--
			w.setManaged(raw, LastReload, last.String())
		},
		"the write has no explanation": func(w *world, raw map[string]any) { w.setManaged(raw, LastReload, w.managed()[LastReload]) },
		"the write explains another template": func(w *world, raw map[string]any) {
			w.setManaged(raw, LastReload, record.LastReload{Time: w.inputs(nil).Now, Hash: "other", Cause: record.CauseConfigChange}.String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rollout(t)
			w.stored["spec"].(map[string]any)["restartAt"] = "2025-01-01T00:00:00Z"
			before := w.managed()
			require.Nil(t, w.write(func(raw map[string]any) {
				w.restarted(raw)
				w.set(cm("a"), "once more")
				spoil(w, raw)
			}))
			assert.Equal(t, before, w.managed())
		})
	}
}

// The controller keeps the pods that were created at spec.restartAt or later. Reloader and kubectl argo rollouts restart write the present time
// without fractions of a second: a pod of that second may have started before the change.
func TestRestartByAnotherWriterLeavesTheReloadDue(t *testing.T) {
	t.Parallel()
	w := rollout(t)
	before := w.managed()
	require.Nil(t, w.write(func(raw map[string]any) {
		raw["spec"].(map[string]any)["restartAt"] = w.inputs(nil).Now.Format(time.RFC3339)
	}))
	assert.Equal(t, before, w.managed())
	assert.Equal(t, policy.Reload, w.verdict().Action)
}

// What is held here has the content that the loop has read: this replica may not know the custom resource yet.
func TestRestartKeepsWhatTheLoopHasReadOfObjectsThatAreHeldHere(t *testing.T) {
	t.Parallel()
	w := rollout(t)
	require.Nil(t, w.write(func(raw map[string]any) {
		w.restarted(raw)
		w.held = map[reference.Ref]bool{cm("a"): true}
	}))
	w.held = nil
	assert.Equal(t, policy.Nothing, w.verdict().Action)
}

// Without the Record the restart would be repeated: the explanation gives way to it.
func TestRestartOfAFullWorkloadIsRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ less, named int }{"all fits": {0, 1}, "no names": {60, 0}, "the Record is longer": {100, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rollout(t)
			require.Nil(t, w.write(func(raw map[string]any) {
				w.restarted(raw)
				w.set(cm("a"), "once more")
				current, _ := w.reader.Read(workload.Object{Kind: w.kind, Raw: raw})
				size := len(current.Managed[Record]) + len(current.Managed[LastReload])
				annotate(raw, "filler", "")
				annotate(raw, "filler", strings.Repeat("x", current.WorkloadBudget-len("filler")-size+c.less))
			}))
			last, err := lastOf(w)
			require.NoError(t, err)
			assert.Len(t, last.Changes, c.named)
			assert.Equal(t, 1, len(last.Changes)+last.More)
			assert.Equal(t, policy.Nothing, w.verdict().Action)
		})
	}
}

// A write that ends a restart before the controller has replaced all pods leaves some with an earlier configuration than that of the
// Record.
func TestEndOfARestartIsStamped(t *testing.T) {
	t.Parallel()
	removed := func(_ *world, raw map[string]any) { delete(raw["spec"].(map[string]any), "restartAt") }
	sets := func(change func(at time.Time) time.Time) func(*world, map[string]any) {
		return func(w *world, raw map[string]any) {
			at := timeIn(w.stored, "spec", "restartAt")
			raw["spec"].(map[string]any)["restartAt"] = change(at).Format(time.RFC3339)
		}
	}
	for name, c := range map[string]struct {
		// before happens after the restart, and write is the write of a user.
		before func(*world)
		write  func(*world, map[string]any)
		// stamped says that the pods are replaced.
		stamped bool
	}{
		"the time is removed": {write: removed, stamped: true},
		"with an earlier explanation": {write: func(w *world, raw map[string]any) {
			removed(w, raw)
			w.setManaged(raw, LastReload, record.LastReload{Time: someTime, Hash: w.managed()[Hash], Cause: record.CauseRelease}.String())
		}, stamped: true},
		"another webhook changes the object, too": {before: func(w *world) {
			w.other = func(raw map[string]any) { annotate(raw, "other", "1") }
		}, write: removed, stamped: true},
		"the time is earlier":       {write: sets(func(at time.Time) time.Time { return at.Add(-time.Second) }), stamped: true},
		"the time is later":         {write: sets(func(at time.Time) time.Time { return at.Add(30 * time.Second) })},
		"the time is in the future": {write: sets(func(at time.Time) time.Time { return at.Add(10 * time.Hour) }), stamped: true},
		"the time is in the future, and another webhook changes the object, too": {before: func(w *world) {
			w.other = func(raw map[string]any) { annotate(raw, "other", "1") }
		}, write: sets(func(at time.Time) time.Time { return at.Add(10 * time.Hour) }), stamped: true},
		"the time is in the future, and the restart is complete": {
			before: completed(0), write: sets(func(at time.Time) time.Time { return at.Add(10 * time.Hour) }),
		},
		"the time is the same":            {write: sets(func(at time.Time) time.Time { return at })},
		"an earlier restart is complete":  {before: completed(-time.Minute), write: removed, stamped: true},
		"the restart is complete":         {before: completed(0), write: removed},
		"the restart is one of a user":    {before: askedByUser(time.Minute), write: removed},
		"the restart was one before ours": {before: askedByUser(-time.Minute), write: removed},
		"the configuration is as it was stamped": {
			before: func(w *world) { w.set(cm("a"), "A again"); w.restartNow() }, write: removed, stamped: true,
		},
		"the configuration cannot be read": {before: func(w *world) { w.unreadable = true }, write: removed, stamped: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rollout(t)
			w.restartNow()
			if c.before != nil {
				c.before(w)
			}
			before, template := w.managed(), w.restarts
			require.Nil(t, w.write(func(raw map[string]any) { c.write(w, raw) }))
			assert.Equal(t, !c.stamped, w.managed().sameStamp(before))
			assert.Equal(t, c.stamped, w.restarts > template)
			if first, err := record.ParseLastReload(before[LastReload]); c.stamped && assert.NoError(t, err) {
				again, err := lastOf(w)
				require.NoError(t, err)
				assert.Equal(t, first.Changes, again.Changes, "the causes are those of the restart")
				assert.Equal(t, record.CauseConfigChange, again.Cause)
				assert.Equal(t, w.managed()[Hash], again.Hash)
			} else {
				assert.Equal(t, before[LastReload], w.managed()[LastReload])
			}
			w.unreadable = false
			assert.Equal(t, policy.Nothing, w.verdict().Action)
		})
	}
}

// A restart by a user takes the place of that by the loop: if it ends, pods may be left that started before both.
func TestEndOfARestartByAUserBehindOneByTheLoopIsStamped(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]time.Duration{"completed in part": -time.Minute, "that of the loop was complete": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rollout(t)
			w.reader.Dialects = append(w.reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
			annotate(w.stored, "reloader.stakater.com/rollout-strategy", "restart")
			w.restartNow()
			askedByUser(time.Minute)(w)
			completed(from)(w)
			before := w.managed()
			require.Nil(t, w.write(func(raw map[string]any) { delete(raw["spec"].(map[string]any), "restartAt") }))
			assert.Equal(t, from == 0, w.managed().sameStamp(before))
		})
	}
}

// A reload by the template has replaced all pods: what follows of restarts is up to users.
func TestEndOfARestartByAUserBehindAStampRestartsNothing(t *testing.T) {
	t.Parallel()
	removed := func(_ *world, raw map[string]any) { delete(raw["spec"].(map[string]any), "restartAt") }
	for name, write := range map[string]func(*world, map[string]any){
		"the workload is handled":  removed,
		"the workload is excluded": both(removed, (*world).ignore),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rollout(t)
			w.reader.Dialects = append(w.reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
			annotate(w.stored, "reloader.stakater.com/rollout-strategy", "restart")
			require.Nil(t, w.write(setImage("image:2")))
			askedByUser(10 * time.Hour)(w)
			before := w.managed()
			require.Nil(t, w.write(func(raw map[string]any) { write(w, raw) }))
			assert.Equal(t, before, w.managed())
		})
	}
}

// An excluded workload is left alone. What its pods have is known from the hash alone then, so that the end of the exclusion restarts them.
func TestRestartThatEndsWithAnExclusionIsDueAfterIt(t *testing.T) {
	t.Parallel()
	for name, restartAt := range map[string]string{"the time is removed": "", "the time is in the future": "2027-01-01T00:00:00Z"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := rollout(t)
			w.restartNow()
			before := w.managed()
			require.Nil(t, w.write(func(raw map[string]any) {
				raw["spec"].(map[string]any)["restartAt"] = restartAt
				w.ignore(raw)
			}))
			assert.True(t, w.managed().sameStamp(before), "the end of a restart does not change the stamp of an excluded workload")
			require.Nil(t, w.write(func(raw map[string]any) { delete(raw["metadata"].(map[string]any), "labels") }))
			assert.Equal(t, policy.Reload, w.verdict().Action)
		})
	}
}

// A write that edits the lists, too, is explained by that; one while another change is due, by the change.
func TestEndOfARestartIsExplainedByWhatElseTheWriteBrings(t *testing.T) {
	t.Parallel()
	w := rollout(t)
	w.restartNow()
	require.Nil(t, w.write(func(raw map[string]any) {
		delete(raw["spec"].(map[string]any), "restartAt")
		annotate(raw, w.keys.Secrets, "a,b")
	}))
	last, err := lastOf(w)
	require.NoError(t, err)
	assert.Equal(t, record.CauseListEdit, last.Cause)
	w = rollout(t)
	w.restartNow()
	w.set(cm("a"), "once more")
	require.Nil(t, w.write(func(raw map[string]any) { delete(raw["spec"].(map[string]any), "restartAt") }))
	last, err = lastOf(w)
	require.NoError(t, err)
	assert.Equal(t, record.CauseConfigChange, last.Cause, "it is no release")
	assert.Equal(t, policy.Nothing, w.verdict().Action)
}

// A leader whose clock is behind that of the leader before restarts all pods that are left.
func TestRestartByAnEarlierClockEndsNone(t *testing.T) {
	t.Parallel()
	w := rollout(t)
	w.restartNow()
	w.set(cm("a"), "once more")
	before, at := w.managed(), timeIn(w.stored, "spec", "restartAt")
	require.Nil(t, w.write(func(raw map[string]any) {
		w.restarted(raw)
		raw["spec"].(map[string]any)["restartAt"] = at.Add(-time.Minute).Format(time.RFC3339)
	}))
	assert.True(t, w.managed().sameStamp(before), "the template stays as it is")
	assert.NotEqual(t, before[LastReload], w.managed()[LastReload])
	assert.Equal(t, policy.Nothing, w.verdict().Action)
}

// restartNow is a restart by the loop, which the controller has not begun.
func (w *world) restartNow() {
	require.Nil(w.t, w.write(w.restarted))
	w.stored["spec"].(map[string]any)["restartAt"] = timeOfRestart(w).Format(time.RFC3339)
}

// timeOfRestart is the time that the loop asks for.
func timeOfRestart(w *world) time.Time {
	last, err := lastOf(w)
	require.NoError(w.t, err)
	return RestartTime(last.Time)
}

// completed notes a restart, some time from that of the loop, as complete.
func completed(from time.Duration) func(*world) {
	return func(w *world) {
		w.stored["status"] = map[string]any{"restartedAt": timeOfRestart(w).Add(from).Format(time.RFC3339)}
	}
}

// askedByUser sets another time than that of the loop.
func askedByUser(from time.Duration) func(*world) {
	return func(w *world) {
		w.stored["spec"].(map[string]any)["restartAt"] = timeOfRestart(w).Add(from).Format(time.RFC3339)
	}
}
