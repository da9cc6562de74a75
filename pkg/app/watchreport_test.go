package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// watches is what a test has the reporter see, and what it says of it.
type watches struct {
	*installationReport
	now      time.Time
	statuses []watchhealth.Status
	leads    bool
	// inherited and err are the answer about the Events of an earlier leader, asked counts the questions.
	inherited bool
	err       error
	asked     int
	events    *events.FakeRecorder
	lines     []string
}

func newWatches() *watches {
	w := &watches{now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), leads: true, events: events.NewFakeRecorder(100)}
	w.installationReport = &installationReport{
		failing: watchhealth.EventFailing, ended: watchhealth.EventRecovered,
		leads:    func() bool { return w.leads },
		recorder: w.events,
		regarding: func(context.Context) *corev1.ObjectReference {
			return &corev1.ObjectReference{Kind: "Deployment", Name: "pod-reloader"}
		},
		predecessor: predecessor{failing: func(context.Context) (bool, error) {
			w.asked++
			return w.inherited, w.err
		}},
		log: funcr.New(func(_, args string) { w.lines = append(w.lines, args) }, funcr.Options{}),
	}
	w.reportsWatches(func() []watchhealth.Status { return w.statuses })
	return w
}

// fails makes watches fail from now on.
func (w *watches) fails(resources ...string) {
	w.statuses = nil
	for _, resource := range resources {
		w.statuses = append(w.statuses, watchhealth.Status{
			Watch: watchhealth.Watch{Resource: resource}, Since: w.now, Reason: watchhealth.Refused, Detail: "it is forbidden",
		})
	}
}

// pass lets time pass and returns the Events.
func (w *watches) pass(t *testing.T, d time.Duration) []string {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(watchLookInterval)
		w.check(t.Context(), w.now)
	}
	var sent []string
	for len(w.events.Events) > 0 {
		sent = append(sent, <-w.events.Events)
	}
	return sent
}

func TestFailingWatchIsReported(t *testing.T) {
	t.Parallel()
	w := newWatches()
	w.statuses = []watchhealth.Status{{Watch: watchhealth.Watch{Resource: "configmaps"}}}
	assert.Empty(t, w.pass(t, time.Hour), "all is well")
	w.fails("secrets", "deployments.apps")
	assert.Empty(t, w.pass(t, 80*time.Second), "an API server that restarts is given some time")
	sent := w.pass(t, 10*time.Second)
	assert.Len(t, sent, 1)
	assert.Contains(t, sent[0], "Warning WatchFailing")
	assert.Contains(t, sent[0], "secrets since 2026-01-02T04:00:00Z (it is forbidden); deployments.apps since")
	assert.Len(t, w.lines, 2, "a line for each watch")
	assert.Empty(t, w.pass(t, 49*time.Minute), "it is said once")
	assert.Len(t, w.pass(t, time.Minute), 1, "the API server forgets Events")
	w.statuses = nil
	sent = w.pass(t, 10*time.Second)
	assert.Len(t, sent, 1)
	assert.Contains(t, sent[0], "Normal WatchRecovered")
	assert.Len(t, w.lines, 3)
	assert.Empty(t, w.pass(t, 2*time.Hour))
}

func TestFurtherFailuresAreReportedWithPauses(t *testing.T) {
	t.Parallel()
	w := newWatches()
	w.fails("secrets")
	assert.Len(t, w.pass(t, 90*time.Second), 1)
	first := w.statuses
	w.statuses = append(w.statuses, watchhealth.Status{Watch: watchhealth.Watch{Resource: "configmaps"}, Since: w.now.Add(-watchPatience)})
	assert.Empty(t, w.pass(t, 50*time.Second), "watches that come and go must not write an Event each time")
	sent := w.pass(t, 10*time.Second)
	assert.Len(t, sent, 1)
	assert.Contains(t, sent[0], "configmaps")
	w.statuses = first
	sent = w.pass(t, time.Minute)
	assert.Len(t, sent, 1)
	assert.NotContains(t, sent[0], "configmaps")
}

// One API server behind a load balancer answers with an error, another one not at all.
func TestReasonsThatChangeAreLoggedWithPausesWhereTheyDiffer(t *testing.T) {
	t.Parallel()
	w := newWatches()
	w.fails("secrets", "configmaps", "deployments.apps")
	w.pass(t, 90*time.Second)
	assert.Len(t, w.lines, 3)
	w.lines = nil
	for range 60 {
		w.statuses[0].Reason, w.statuses[1].Reason = w.statuses[1].Reason, watchhealth.NoAnswer
		w.pass(t, watchLookInterval)
		w.statuses[0].Reason, w.statuses[1].Reason = watchhealth.NoAnswer, watchhealth.Refused
		w.pass(t, watchLookInterval)
	}
	assert.NotEmpty(t, w.lines)
	assert.LessOrEqual(t, len(w.lines), 2*20, "once a minute, in 20 minutes")
	assert.False(t, slices.ContainsFunc(w.lines, func(l string) bool { return strings.Contains(l, "deployments") }), "its reason is the same")
	w.lines = nil
	w.statuses = append(w.statuses, watchhealth.Status{Watch: watchhealth.Watch{Resource: "jobs"}, Since: w.now.Add(-watchPatience), Reason: watchhealth.NoAnswer})
	sent := w.pass(t, time.Minute)
	assert.Len(t, w.lines, 1, "the one that fails, too")
	assert.Len(t, sent, 1)
	w.statuses, w.lines = nil, nil
	w.pass(t, watchLookInterval)
	assert.Len(t, w.lines, 1)
	assert.Contains(t, w.lines[0], "all watches work again")
	w.fails("secrets")
	w.pass(t, 3*time.Minute)
	assert.Len(t, w.lines, 2, "it fails again, for the same reason")
}

func TestStandbyReportsInItsLogOnly(t *testing.T) {
	t.Parallel()
	w := newWatches()
	w.leads = false
	w.fails("secrets")
	assert.Empty(t, w.pass(t, time.Hour))
	assert.Len(t, w.lines, 1)
	w.leads = true
	assert.Len(t, w.pass(t, 10*time.Second), 1, "it leads now")
}

func TestManyFailuresFitIntoAnEvent(t *testing.T) {
	t.Parallel()
	w := newWatches()
	w.fails("a", "b", "c", "d", "e", "f", "g", "h")
	note := failingNote(w.statuses)
	assert.Contains(t, note, "f since")
	assert.NotContains(t, note, "g since")
	assert.True(t, strings.HasSuffix(note, "; and 2 more"), note)
}

// ownReader reads the installation's Deployment, or fails.
type ownReader struct {
	client.Reader
	err error
}

func (r ownReader) Get(_ context.Context, name client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetUID(types.UID("uid of " + name.String()))
	return r.err
}

func TestEventsAreOnTheInstallationsDeployment(t *testing.T) {
	t.Parallel()
	want := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "home", Name: "reloader"}
	assert.Equal(t, want, ownDeployment(ownReader{err: errors.New("forbidden")}, "home", "reloader")(t.Context()), "the name has to do")
	want.UID = "uid of home/reloader"
	assert.Equal(t, want, ownDeployment(ownReader{}, "home", "reloader")(t.Context()))
}

// A leader has reported that its watches fail, and was stopped.
func TestNewLeaderEndsTheReportOfItsPredecessor(t *testing.T) {
	t.Parallel()
	w := newWatches()
	w.inherited, w.leads = true, false
	w.fails("secrets")
	assert.Empty(t, w.pass(t, time.Hour))
	w.statuses = nil
	w.leads = true
	assert.Empty(t, w.pass(t, time.Minute), "no watch has begun")
	w.fails("secrets")
	assert.Empty(t, w.pass(t, time.Minute), "one does not work yet, though not for long enough to be reported")
	assert.Zero(t, w.asked)
	w.statuses = []watchhealth.Status{{Watch: watchhealth.Watch{Resource: "secrets"}}}
	sent := w.pass(t, 10*time.Second)
	assert.Len(t, sent, 1)
	assert.Contains(t, sent[0], "Normal WatchRecovered")
	assert.Empty(t, w.pass(t, 2*time.Hour))
	assert.Equal(t, 1, w.asked)
}

func TestNewLeaderAsksOnceForTheReportOfItsPredecessor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		fails bool
		want  int
	}{
		"nothing was reported":             {want: 1},
		"no permission":                    {err: apierrors.NewForbidden(eventsv1.Resource("events"), "", nil), want: 1},
		"no answer":                        {err: errors.New("timeout"), want: inheritTries},
		"the watches of this replica fail": {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatches()
			w.err = tc.err
			w.statuses = []watchhealth.Status{{Watch: watchhealth.Watch{Resource: "secrets"}}}
			if tc.fails {
				w.fails("secrets")
				assert.Len(t, w.pass(t, 90*time.Second), 1)
				w.statuses = []watchhealth.Status{{Watch: watchhealth.Watch{Resource: "secrets"}}}
				assert.Len(t, w.pass(t, 10*time.Second), 1, "it ends its own report")
			}
			assert.Empty(t, w.pass(t, time.Hour))
			assert.Equal(t, tc.want, w.asked)
		})
	}
}
