package report

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// sent keeps the messages that are put into the outbox.
type sent struct{ messages []outbox.Message }

func (s *sent) Put(m outbox.Message) { s.messages = append(s.messages, m) }

// notes are the texts of the Events.
func (s *sent) notes() []string {
	var notes []string
	for _, m := range s.messages {
		notes = append(notes, m.Event.Note)
	}
	return notes
}

// webOf is a workload with an identity.
func webOf() Subject {
	return Subject{
		Key: workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: "web"},
		Object: summaryOf(workload.Deployment(), map[string]any{
			"metadata": map[string]any{"uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
		}),
	}
}

// A node may boot with a clock that is ahead, and set it after the process has begun to lead.
func TestReloadAfterTheClockOfTheLeaderWasSetBackBelongsToIt(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	l.with.Leads.Begin(now.Add(time.Hour))
	made := reloadAt(*now, "abc")
	assert.True(t, l.IsOfThisLeader(webOf(), made), "the reload was made after the clock was set back")
	assert.False(t, l.IsOfThisLeader(webOf(), reloadAt(now.Add(-time.Minute), "abc")), "it did not lead yet")
	l.EmitReloads(webOf().with(made))
	assert.Len(t, out.messages, 1)
}

// emitter is a Reporter, the messages that it sends, and its clock.
func emitter() (*Reporter, *sent, *time.Time) {
	out, now := &sent{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return New(Options{
		Out: out, Instance: "pod-reloader-a", Metrics: prometheus.NewRegistry(), Leads: &queue.Leadership{}, State: &state.State{},
		Now: func() time.Time { return now },
	}), out, &now
}

func TestWarningEvent(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	s := webOf()
	db := reference.Ref{Kind: reference.Secret, Name: "db"}
	l.Warn(s, "ConfigMissing", "not found: secret/db", db)
	l.Warn(s, "ConfigMissing", "not found: secret/db", db)
	require.Len(t, out.messages, 1, "the same text is no news")
	m := out.messages[0]
	assert.Equal(t, "apps/v1/Deployment shop/web", m.Subject)
	assert.Equal(t, "ConfigMissing", m.Topic, "a newer text replaces one that is not written yet")
	assert.True(t, m.Repeat, "where the Event exists this one is counted on it")
	assert.Equal(t, state.WarnAgain, m.Life)
	assert.Zero(t, m.Delay)
	assert.Equal(t, corev1.EventTypeWarning, m.Event.Type)
	assert.Equal(t, "ConfigMissing", m.Event.Reason)
	assert.Equal(t, "not found: secret/db", m.Event.Note)
	assert.Equal(t, *now, m.Event.EventTime.Time)
	assert.Equal(t, "pod-reloader-a", m.Event.ReportingInstance)
	assert.Equal(t, corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u1"}, m.Event.Regarding)
	assert.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "db"}, m.Event.Related)

	assert.True(t, m.Valid(), "the text is still the last one")
	l.Warn(s, "ConfigMissing", "not found: secret/other")
	assert.False(t, m.Valid(), "the text is another one by now")
	assert.NotEqual(t, m.Event.Name, out.messages[1].Event.Name, "another text is another Event")
	l.Warn(s, "ReloadHeld", "not found: secret/db")
	assert.NotEqual(t, m.Event.Name, out.messages[2].Event.Name, "another reason is another Event")
	assert.Equal(t, corev1.EventTypeWarning, out.messages[2].Event.Type)
}

// Thousands of Warning Events may wait: none of them keeps the annotations of its workload.
func TestWaitingWarningKeepsNoWorkload(t *testing.T) {
	t.Parallel()
	l, out, _ := emitter()
	warn := func() weak.Pointer[workload.Kept] {
		s := webOf()
		l.Warn(s, "ConfigMissing", "not found: secret/db")
		return weak.Make(s.Object.Kept)
	}
	kept := warn()
	runtime.GC()
	assert.Nil(t, kept.Value())
	require.Len(t, out.messages, 1)
	assert.True(t, out.messages[0].Valid(), "the warning may still be sent")
}

// Under constant change the text of a failure is another one each time.
func TestWarningsOfOneReasonAreSpacedOut(t *testing.T) {
	t.Parallel()
	l, out, now := emitter()
	s := webOf()
	for n := range 45 {
		l.Warn(s, "ReloadFailed", strings.Repeat("x", n+1))
		*now = now.Add(time.Second)
	}
	waits := 0
	for _, m := range out.messages {
		if m.Delay > 0 {
			waits++
			assert.LessOrEqual(t, m.Delay, time.Minute)
		}
	}
	assert.Equal(t, 4, len(out.messages)-waits, "the first are written at once")
	l.Warn(s, "ConfigMissing", "gone")
	assert.Zero(t, out.messages[len(out.messages)-1].Delay, "another reason has its own pace")
}

func TestRelated(t *testing.T) {
	t.Parallel()
	db := reference.Ref{Kind: reference.Secret, Name: "db"}
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	tests := map[string]struct {
		causes []reference.Ref
		want   *corev1.ObjectReference
		why    string
	}{
		"none":        {why: "an Event about the workload alone"},
		"a Secret":    {causes: []reference.Ref{db}, want: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "db"}},
		"a ConfigMap": {causes: []reference.Ref{app}, want: &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "app"}},
		"several":     {causes: []reference.Ref{app, db}, why: "there is a field for one: to name the first would say that the others had no part in it"},
		"folded":      {causes: []reference.Ref{policy.Any}, why: "no object has this name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, related("shop", tc.causes), tc.why)
		})
	}
}

// summaryOf keeps all labels and annotations.
func summaryOf(kind workload.Kind, raw map[string]any) workload.Summary {
	return workload.Object{Kind: kind, Raw: raw}.Summary()
}

func TestEndOfAPauseIsReportedOnce(t *testing.T) {
	t.Parallel()
	l, out, _ := emitter()
	for _, since := range []string{"2026-01-02T03:00:00Z", "2026-01-02T03:00:00Z", "2026-01-02T02:00:00Z"} {
		l.EmitResumed(webOf(), since)
	}
	require.Len(t, out.messages, 3)
	event := out.messages[0].Event
	assert.Equal(t, "resumed: the pause is over, and updates of the pod template since 2026-01-02T03:00:00Z roll out", event.Note)
	assert.Equal(t, corev1.EventTypeNormal, event.Type)
	assert.Equal(t, event.Name, out.messages[1].Event.Name, "by whichever leader, it is one Event")
	assert.NotEqual(t, event.Name, out.messages[2].Event.Name, "another pause")
}

// The annotation with the begin of a pause may be written by hand.
func TestEndOfAPauseNamesNoBeginThatIsNoEarlierTime(t *testing.T) {
	t.Parallel()
	for _, since := range []string{"2126-01-02T03:00:00Z", "yesterday"} {
		l, out, _ := emitter()
		l.EmitResumed(webOf(), since)
		require.Len(t, out.messages, 1)
		assert.Equal(t, "resumed: the pause is over, and updates of the pod template roll out", out.messages[0].Event.Note, since)
	}
}

func TestReloadBelongsToTheTermOfItsLeader(t *testing.T) {
	t.Parallel()
	l, _, now := emitter()
	l.with.Leads.Begin(now.Add(-24 * time.Hour))
	young := webOf()
	young.Object = summaryOf(workload.Deployment(), map[string]any{"metadata": map[string]any{"creationTimestamp": now.Format(time.RFC3339)}})
	for name, tc := range map[string]struct {
		subject Subject
		ago     time.Duration
		want    bool
	}{
		"just now":                    {webOf(), 0, true},
		"while it is reported":        {webOf(), reportedFor - time.Second, true},
		"long ago":                    {webOf(), reportedFor, false},
		"before this process leads":   {webOf(), 25 * time.Hour, false},
		"before the workload existed": {young, time.Minute, false},
	} {
		assert.Equal(t, tc.want, l.IsOfThisLeader(tc.subject, reloadAt(now.Add(-tc.ago), "abc")), name)
	}
}
