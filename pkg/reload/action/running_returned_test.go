package action

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// unstamped is a CronJob that is run for changes of configmap/app whose stamps are refused.
type unstamped struct {
	*batch

	now     time.Time
	ring    digest.Ring
	actions *Actions
	// recorded is the content of the Record, last the last reload, if any.
	recorded string
	last     *record.LastReload
	// hash is that of the pod template.
	hash string
}

func newUnstamped(t *testing.T, reloaded bool) *unstamped {
	t.Helper()
	u := &unstamped{
		batch: &batch{uid: "u1", jobs: map[string]int{}}, ring: digesttest.Ring(t, "a"), recorded: "A", hash: "0",
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if reloaded {
		u.last = &record.LastReload{Time: u.now.Add(-time.Hour), Hash: "0", Cause: record.CauseConfigChange}
	}
	u.actions = newActions(Options{Client: u.batch, Gates: state.Gates{Refractory: 5 * time.Second}, Gather: gather.Gatherer{
		Reader: bothDialects(t), APIReader: u.batch, Now: func() time.Time { return u.now },
	}}, &reloadtest.Outbox{})
	return u
}

// statesOf is configmap/app with a content, and what else a list names.
func (u *unstamped) statesOf(content string) map[reference.Ref]digest.State {
	object := &corev1.ConfigMap{Data: map[string]string{"key": content}}
	object.Namespace, object.Name = "shop", "app"
	return map[reference.Ref]digest.State{
		{Kind: reference.ConfigMap, Name: "app"}: digest.StateOf(digest.OfConfigMap(object), "uid", content, u.ring),
		{Kind: reference.Secret, Name: "more"}:   {Absent: true},
	}
}

// subject is the CronJob with the Record, as the watch shows it.
func (u *unstamped) subject(t *testing.T, tracked ...reference.Ref) (gather.Subject, policy.Verdict) {
	t.Helper()
	s, verdict := dueCronJob(true)
	s.Object = reloadtest.Summary(s.Object.Kind, map[string]any{"metadata": map[string]any{"uid": u.uid, "name": "backup"}, "spec": u.spec})
	for _, ref := range tracked {
		s.View.Intent.Tracked[ref] = annotation.Trigger{AtOnce: true}
	}
	in := policy.Input{
		Namespace: "shop", Intent: s.View.Intent, Refs: s.View.Intent.Refs(), Current: u.statesOf(u.recorded), Ring: u.ring,
	}
	rec, err := policy.NewRecord(in, u.hash, false)
	require.NoError(t, err)
	text, fits := rec.Text(record.MaxSize)
	require.True(t, fits, "the Record fits into its largest size")
	s.View.Managed = stamp.Managed{stamp.Hash: u.hash, stamp.Record: text}
	if u.last != nil {
		u.reload = u.last.String()
		s.View.Managed[stamp.LastReload] = u.reload
	}
	return s, verdict
}

// run makes the Job for a content, and returns its name. The stamp is refused.
func (u *unstamped) run(t *testing.T, content string) string {
	t.Helper()
	s, verdict := u.subject(t)
	require.Nil(t, u.actions.runs.runIfDue(t.Context(), &s, verdict, u.ring, u.statesOf(content)))
	return s.Effects.Run.Job
}

// inOrder looks at the CronJob while its configuration is that of the Record, and returns when to look again.
func (u *unstamped) inOrder(t *testing.T, tracked ...reference.Ref) time.Duration {
	t.Helper()
	s, _ := u.subject(t, tracked...)
	return u.actions.Close(t.Context(), u.actions.UpToDate(t.Context(), s)).RequeueAfter
}

// later is when the refractory time is over.
func (u *unstamped) later() { u.now = u.now.Add(5 * time.Second) }

func TestContentThatComesBackBeforeItsStampIsRun(t *testing.T) {
	t.Parallel()
	for name, reloaded := range map[string]bool{"after a reload": true, "without a last-reload": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnstamped(t, reloaded)
			first := u.run(t, "B")
			assert.Equal(t, first, u.run(t, "B"), "another attempt")
			assert.Equal(t, 5*time.Second, u.inOrder(t), "the runs keep their distance")
			assert.Len(t, u.jobs, 1)
			u.later()
			for range 2 {
				assert.Zero(t, u.inOrder(t))
				assert.Len(t, u.jobs, 2, "one run with the content that is back")
			}
			u.later()
			second := u.run(t, "B")
			assert.NotEqual(t, first, second, "the Event names the Job of this change")
			assert.Len(t, u.jobs, 3, "the change is another one")
			assert.Equal(t, second, u.run(t, "B"))
			u.later()
			assert.Zero(t, u.inOrder(t))
			assert.Len(t, u.jobs, 4)
		})
	}
}

// Where last-reload does not fit into the annotations, all reloads follow none.
func TestContentThatComesBackAfterAnotherOneIsRunWithoutALastReload(t *testing.T) {
	t.Parallel()
	u := newUnstamped(t, false)
	for i, content := range []string{"B", "C", "B", "C"} {
		u.run(t, content)
		u.recorded = content // the stamp, without a last-reload
		assert.Zero(t, u.inOrder(t), content)
		assert.Len(t, u.jobs, i+1, content)
		u.later()
	}
}

func TestContentThatComesBackIsNotRunAgain(t *testing.T) {
	t.Parallel()
	more := reference.Ref{Kind: reference.Secret, Name: "more"}
	for name, tc := range map[string]struct {
		then func(t *testing.T, u *unstamped)
		jobs int
	}{
		"the change is back before the run": {jobs: 1, then: func(t *testing.T, u *unstamped) {
			t.Helper()
			assert.Positive(t, u.inOrder(t))
			u.run(t, "B")
		}},
		"the CronJob is suspended": {jobs: 1, then: func(t *testing.T, u *unstamped) {
			t.Helper()
			u.spec = map[string]any{"suspend": true}
			u.later()
			assert.Zero(t, u.inOrder(t))
			u.spec = nil
			assert.Zero(t, u.inOrder(t), "it is over when it is resumed")
		}},
		"another object is tracked as well": {jobs: 1, then: func(t *testing.T, u *unstamped) {
			t.Helper()
			u.later()
			assert.Zero(t, u.inOrder(t, more), "it is adopted")
		}},
		"a user stamps the earlier content": {jobs: 1, then: func(t *testing.T, u *unstamped) {
			t.Helper()
			last := record.LastReload{Time: u.now, Hash: "0", Cause: record.CauseVerifiedReload}.After(*u.last)
			u.last = &last
			u.later()
			assert.Zero(t, u.inOrder(t))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnstamped(t, true)
			u.run(t, "B")
			tc.then(t, u)
			assert.Len(t, u.jobs, tc.jobs)
		})
	}
}

// The Job that was made before for that content has started before the last one, whose content is not there any more.
func TestReleaseWithAContentThatIsBackIsRun(t *testing.T) {
	t.Parallel()
	u := newUnstamped(t, true)
	u.run(t, "B")
	u.later()
	u.run(t, "C")
	u.later()
	last := record.LastReload{
		Time: u.now, Hash: "0", Cause: record.CauseRelease, Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}.After(*u.last)
	u.last, u.recorded = &last, "B"
	s, _ := u.subject(t)
	u.actions.RequireRun(s)
	assert.Zero(t, u.inOrder(t))
	assert.Len(t, u.jobs, 3)
}
