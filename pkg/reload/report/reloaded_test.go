package report

import (
	"cmp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// reloadAt is a reload by a change of configmap/app.
func reloadAt(at time.Time, hash string) record.LastReload {
	return record.LastReload{
		Time: at, Hash: hash, Cause: record.CauseConfigChange, Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}
}

// with returns a workload whose last-reload annotation is this one.
func (s Subject) with(last record.LastReload) Subject {
	s.Managed = stamp.Managed{stamp.Hash: last.Hash, stamp.LastReload: last.String()}
	return s
}

func counted(l *Reporter, causes ...string) int {
	sum := 0
	for _, cause := range causes {
		sum += int(testutil.ToFloat64(l.metrics.reloads.WithLabelValues("Deployment", cause)))
	}
	return sum
}

func TestReloadsOfTheLeaderAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	since := now.Add(-time.Minute)
	l.with.Leads.Begin(since)
	s := webOf().with(reloadAt(now.Add(-time.Second), "a"))
	l.EmitReloads(s)
	l.EmitReloads(s)
	require.Len(t, out.messages, 1, "once, though the Events of earlier leaders are not listed yet")
	m := out.messages[0]
	assert.Equal(t, "pod template updated: configmap/app modified", m.Event.Note)
	assert.Equal(t, "Reloaded", m.Event.Reason)
	assert.Equal(t, "Reload", m.Event.Action)
	assert.Equal(t, corev1.EventTypeNormal, m.Event.Type)
	assert.Equal(t, now.Add(-time.Second), m.Event.EventTime.Time, "when it was made")
	assert.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "app"}, m.Event.Related)
	assert.Empty(t, m.Topic, "no other Event replaces it")
	assert.False(t, m.Repeat, "an Event that was sent before is not counted up")
	assert.InDelta(t, reportedFor, m.Life, float64(time.Second), "from now on, whatever the clock of the webhook says")
	assert.Zero(t, counted(l, "configmap"), "who creates the Event counts it")
	m.Done(outbox.Created)
	assert.Equal(t, 1, counted(l, "configmap"))
}

func TestEventNameIsThatOfTheReload(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, other := webOf(), webOf()
	other.Object = summaryOf(other.Object.Kind, map[string]any{"metadata": map[string]any{"uid": "u2"}})
	name := eventName(s, reloadAt(t0, "a"))
	parsed, err := record.ParseLastReload(reloadAt(t0, "a").String())
	require.NoError(t, err)
	assert.Equal(t, name, eventName(s, parsed), "the same in every process")
	later, err := record.ParseLastReload(reloadAt(t0.Add(time.Minute), "b").After(parsed).String())
	require.NoError(t, err)
	assert.Equal(t, name, eventName(s, later.All()[1]), "the same as a predecessor")
	assert.NotEqual(t, name, eventName(s, reloadAt(t0.Add(time.Millisecond), "a")))
	assert.NotEqual(t, name, eventName(s, reloadAt(t0, "b")))
	assert.NotEqual(t, name, eventName(other, reloadAt(t0, "a")), "a workload of the same name that was created again")
}

// A new leader reports what earlier ones have not.
func TestNewLeaderReportsWhatHasNoEvent(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	since := *now
	l.with.Leads.Begin(since)
	first := reloadAt(now.Add(-50*time.Minute), "1")
	second := reloadAt(now.Add(-49*time.Minute), "2").After(first)
	third := reloadAt(now.Add(-2*time.Minute), "3").After(second)
	fourth := reloadAt(now.Add(-time.Minute), "4").After(third)
	s := webOf().with(fourth)
	l.EmitReloads(s)
	l.EmitReloads(s)
	assert.Empty(t, out.messages, "the Events of earlier leaders are not listed yet")
	again := l.catchUp.finish(map[uint64]bool{state.DigestOf("shop/" + eventName(s, third)): true})
	assert.Equal(t, []workload.Key{s.Key}, again, "it is looked at again")
	l.EmitReloads(s)
	l.EmitReloads(s)
	assert.Equal(t, []string{"pod template updated: its configuration has changed", "pod template updated: configmap/app modified"}, out.notes(),
		"those without an Event, the oldest first, but for one that is too old")
	assert.Equal(t, eventName(s, second), out.messages[0].Event.Name)
	assert.Equal(t, time.Minute, out.messages[0].Life)
	assert.Equal(t, eventName(s, fourth), out.messages[1].Event.Name)
	out.messages[0].Done(outbox.Exists)
	assert.Zero(t, counted(l, "configmap", record.CauseConfigChange), "another has created it, and counted the reload")
	out.messages[1].Done(outbox.Created)
	assert.Equal(t, 1, counted(l, "configmap", record.CauseConfigChange))
}

// The list may end between the look at a workload and its wait for the list.
func TestWorkloadThatComesWhileTheListEndsIsReported(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	since := *now
	l.with.Leads.Begin(since)
	assert.True(t, l.catchUp.await(workload.Key{Name: "other"}), "the list has not ended")
	assert.True(t, l.catchUp.await(workload.Key{Name: "other"}), "it may wait again")
	assert.Len(t, l.catchUp.finish(nil), 1, "each once")
	assert.False(t, l.catchUp.await(workload.Key{Name: "web"}), "the list has ended")
	s := webOf().with(reloadAt(now.Add(-time.Minute), "a"))
	l.EmitReloads(s)
	assert.Len(t, out.messages, 1, "where the list has failed, every reload is written")
	l.catchUp.forget()
	assert.Nil(t, l.catchUp.names)
}

// Its creation time says only within which second it was created.
func TestJobDoesNotReportTheReloadsOfThoseItReplaces(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	l.with.Leads.Begin(now.Add(-time.Minute))
	jobOf := func(uid string, last record.LastReload) Subject {
		return Subject{
			Key: workload.Key{Kind: "batch/v1/Job", Namespace: "shop", Name: "import"},
			Object: summaryOf(workload.Job(), map[string]any{"metadata": map[string]any{
				"uid": uid, "creationTimestamp": now.UTC().Format(time.RFC3339),
			}}),
		}.with(last)
	}
	one := reloadAt(now.Add(10*time.Millisecond), "1")
	l.EmitOwn(jobOf("u1", one), one)
	two := reloadAt(now.Add(20*time.Millisecond), "2").After(one)
	l.EmitOwn(jobOf("u2", two), two)
	l.EmitReloads(jobOf("u2", two))
	assert.Len(t, out.messages, 2, "one for each")
	three := reloadAt(now.Add(30*time.Millisecond), "3").After(two)
	l.EmitReloads(jobOf("u3", three))
	assert.Len(t, out.messages, 3, "its own, although this process has not made it")
}

// The pods of some kinds are restarted by a field of their own.
func TestReloadWithoutAStampIsReported(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	l.with.Leads.Begin(now.Add(-time.Minute))
	s := webOf()
	s.Managed = stamp.Managed{stamp.LastReload: reloadAt(*now, "").String()}
	assert.True(t, l.EmitReloads(s), "the reload is new")
	assert.Len(t, out.messages, 1)
}

func TestEventOfAReloadThatIsNotStoredIsNamedByItsGeneration(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		unwritten  bool
		generation int64
		same       bool
	}{
		"not stored":                       {unwritten: true, generation: 3, same: true},
		"not stored, without a generation": {unwritten: true},
		"stored":                           {generation: 3},
	} {
		s, first, again := webOf(), reloadAt(now, "a"), reloadAt(now.Add(time.Second), "a")
		s.Unwritten, first.Generation, again.Generation = tc.unwritten, tc.generation, tc.generation
		assert.Equal(t, tc.same, eventName(s, first) == eventName(s, again), name)
	}
}

func TestReloadThatFollowsAtOnceLosesNothing(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	since := now.Add(-time.Minute)
	l.with.Leads.Begin(since)
	s := webOf()
	one := reloadAt(now.Add(-3*time.Second), "1")
	l.EmitReloads(s.with(one))
	two := reloadAt(now.Add(-2*time.Second), "2").After(one)
	three := reloadAt(now.Add(-time.Second), "3").After(two)
	l.EmitReloads(s.with(three))
	require.Len(t, out.messages, 3)
	assert.Equal(t, eventName(s, two), out.messages[1].Event.Name)
	l.EmitReloads(s.with(one))
	l.EmitReloads(s.with(three))
	assert.Len(t, out.messages, 3, "an undo and its undo bring back what was reported")
}

// The schema of a kind may drop the annotations of its pod template: then no pod was restarted.
func TestFirstStampIsReportedWhereItIsStored(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	since := now.Add(-time.Minute)
	l.with.Leads.Begin(since)
	s, last := webOf(), reloadAt(*now, "1")
	l.EmitOwn(s, last)
	assert.Empty(t, out.messages)
	dropped := s.with(last)
	delete(dropped.Managed, stamp.Hash)
	l.EmitReloads(dropped)
	assert.Empty(t, out.messages)
	l.EmitReloads(s.with(last))
	assert.Len(t, out.messages, 1)
}

// The watch shows neither which Job was run nor a last reload that did not fit.
func TestFirstStampIsReportedAtOnceWhereTheWatchShowsLess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		subject func(s *Subject)
		note    string
	}{
		"a Job was run":           {func(s *Subject) { s.Ran = "nightly-1" }, "pod template updated, and the CronJob run at once as Job nightly-1"},
		"last-reload did not fit": {func(s *Subject) { s.Unwritten = true }, "pod template updated"},
		"all will be shown":       {func(*Subject) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, out, now := emitter()
			l.with.Leads.Begin(now.Add(-time.Minute))
			s, last := webOf(), reloadAt(*now, "1")
			tc.subject(&s)
			l.EmitOwn(s, last)
			if tc.note == "" {
				assert.Empty(t, out.messages)
				return
			}
			require.Len(t, out.messages, 1)
			assert.Contains(t, out.messages[0].Event.Note, tc.note)
			l.EmitReloads(s.with(last))
			assert.Len(t, out.messages, 1, "the watch shows nothing new")
		})
	}
}

func TestOwnReloadIsReportedWithoutTheWatch(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	since := now.Add(-time.Minute)
	l.with.Leads.Begin(since)
	s := webOf()
	s.Managed = stamp.Managed{stamp.Hash: "0"}
	one := reloadAt(now.Add(-3*time.Hour), "1")
	two := reloadAt(now.Add(-time.Second), "2").After(one)
	l.EmitOwn(s, one)
	require.Len(t, out.messages, 1, "whatever the clock of the webhook says")
	l.EmitOwn(s, two)
	l.EmitReloads(s.with(two))
	assert.Len(t, out.messages, 2, "the watch shows nothing new")
	l.EmitOwn(s, record.LastReload{})
	assert.Len(t, out.messages, 2, "a ref that did not fit into the annotations has no name")
}

// The watch can show late that a workload was deleted which this process has created again and reloaded.
func TestReloadIsReportedOnceThoughItsWorkloadIsForgotten(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	l.with.Leads.Begin(now.Add(-time.Minute))
	last := reloadAt(*now, "a")
	s := webOf().with(last)
	l.EmitOwn(s, last)
	l.with.State.Forget(s.Key)
	l.EmitReloads(s)
	assert.Len(t, out.messages, 1)
}

func TestCopiedLastReloadIsNotReported(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	since := now.Add(-time.Hour)
	l.with.Leads.Begin(since)
	s := webOf()
	s.Object = summaryOf(s.Object.Kind, map[string]any{"metadata": map[string]any{"uid": "u2", "creationTimestamp": now.Format(time.RFC3339)}})
	l.EmitReloads(s.with(reloadAt(now.Add(-time.Second), "1")))
	assert.Empty(t, out.messages, "the workload did not exist then")
	l.EmitReloads(s.with(reloadAt(*now, "1")))
	assert.Len(t, out.messages, 1)
}

func TestUnreadableLastReloadIsReadOnce(t *testing.T) {
	t.Parallel()
	l, out, _ := emitter()
	s := webOf()
	s.Managed = stamp.Managed{stamp.Hash: "x", stamp.LastReload: "{"}
	l.EmitReloads(s)
	assert.Empty(t, out.messages)
	_, open := l.with.State.Reports.Observe(s.Key, "{", l.with.Now())
	assert.False(t, open, "it is decided: nothing can be reported of what is unreadable")
}

func TestReloadFromTheFutureIsReported(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	since := now.Add(-time.Minute)
	l.with.Leads.Begin(since)
	l.EmitReloads(webOf().with(reloadAt(now.Add(time.Hour), "1")))
	require.Len(t, out.messages, 1)
	assert.Equal(t, *now, out.messages[0].Event.EventTime.Time, "a clock was wrong: it counts as now")
	assert.Equal(t, reportedFor, out.messages[0].Life)
}

func TestPendingIsReportedForTheLastReloadOnly(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	since := now.Add(-time.Minute)
	l.with.Leads.Begin(since)
	s := webOf()
	s.Object = summaryOf(s.Object.Kind, map[string]any{
		"metadata": map[string]any{"uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": map[string]any{"paused": true},
	})
	l.EmitReloads(s.with(reloadAt(*now, "2").After(reloadAt(now.Add(-time.Second), "1"))))
	assert.Equal(t, []string{"pod template updated: its configuration has changed", "pod template updated, rollout pending (paused): configmap/app modified"}, out.notes())
}

func TestReloadInPlaceIsReportedAsPending(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	l.with.Leads.Begin(now.Add(-time.Minute))
	s := webOf()
	s.InPlace = workload.InPlaceIfPossible
	l.EmitReloads(s.with(reloadAt(*now, "1")))
	assert.Equal(t, []string{"pod template updated, rollout pending (InPlaceIfPossible): configmap/app modified"}, out.notes())
}

func TestSentence(t *testing.T) {
	t.Parallel()
	app := record.Change{Ref: "configmap/app", Type: record.Modified}
	db := record.Change{Ref: "secret/db", Type: record.Created}
	tests := map[string]struct {
		last   record.LastReload
		effect string
		want   string
		kinds  string
	}{
		"one cause": {
			last: record.LastReload{Cause: record.CauseConfigChange, Changes: []record.Change{app}},
			want: "pod template updated: configmap/app modified", kinds: "configmap",
		},
		"all causes are named": {
			last: record.LastReload{Cause: record.CauseConfigChange, Changes: []record.Change{app, db}, More: 3},
			want: "pod template updated: configmap/app modified, secret/db created, 3 more", kinds: "several",
		},
		"the pods have to wait": {
			last:   record.LastReload{Cause: record.CauseConfigChange, Changes: []record.Change{db}},
			effect: "pod template updated, rollout pending (paused)",
			want:   "pod template updated, rollout pending (paused): secret/db created", kinds: "secret",
		},
		"with a release": {
			last: record.LastReload{Cause: record.CauseRelease, Changes: []record.Change{app}},
			want: "pod template updated: configmap/app modified, together with a release", kinds: "configmap",
		},
		"a client": {
			last: record.LastReload{Cause: record.CauseVerifiedReload},
			want: "pod template updated: requested by a client with a verified digest", kinds: record.CauseVerifiedReload,
		},
		"a list": {
			last: record.LastReload{Cause: record.CauseListEdit},
			want: "pod template updated: the list of config objects was edited", kinds: record.CauseListEdit,
		},
		"written by hand": {
			last: record.LastReload{Cause: "my-own", Changes: []record.Change{{Ref: "pod/x", Type: "seen"}}},
			want: "pod template updated: pod/x seen", kinds: "other",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, sentence(tc.last, cmp.Or(tc.effect, stamped)))
			assert.Equal(t, tc.kinds, causeKinds(tc.last), "the label of the metric")
		})
	}
}
