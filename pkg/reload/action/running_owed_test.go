package action

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// A direct stamp has what is read for it, too: the run is decided by that, not by what the watch has shown.
func TestDirectStampRunsForAChangeThatTheWatchHasNotShown(t *testing.T) {
	t.Parallel()
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	other := reference.Ref{Kind: reference.Secret, Name: "other"}
	absent := map[reference.Ref]digest.State{app: {Absent: true}, other: {Absent: true}}
	const entry = "0123456789abcdef"
	for name, tc := range map[string]struct {
		recorded string
		jobs     int
	}{
		"what runs it has changed, too": {recorded: "configmap/app=" + entry + ",secret/other=" + entry, jobs: 1},
		"only what stamps has changed":  {recorded: "configmap/app=-,secret/other=" + entry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &batch{uid: "u1", jobs: map[string]int{}, annotations: map[string]string{
				reloadList: "app", annotation.DefaultPrefix + "secrets": "other",
				annotation.DefaultPrefix + "config-record": "v1:-:" + string(newest.ID) + ":" + tc.recorded,
			}}
			reader := bothDialects(t)
			reader.Dialects = append(reloadtest.Reader().Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnDelete: true})
			actions := newActions(Options{Client: b, Gather: gather.Gatherer{
				Reader: reader, APIReader: b, Keys: &reloadtest.Keys{Present: ring}, Store: &reloadtest.Store{States: absent},
			}}, &reloadtest.Outbox{})
			s, _ := dueCronJob(true)
			shown := policy.Verdict{Action: policy.Reload, Changes: []policy.Change{{Ref: other, Type: policy.Deleted}}}
			assert.IsType(t, failed{}, actions.stamps.write(t.Context(), s, shown), "the API server is away for the patch")
			assert.Len(t, b.jobs, tc.jobs)
		})
	}
}

func TestOwedRunIsMadeOnceNothingIsDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &batch{uid: "u1", jobs: map[string]int{}}
	actions := newActions(Options{
		Gather: gather.Gatherer{Reader: bothDialects(t), APIReader: b, Now: func() time.Time { return now }}, Client: b, Gates: state.Gates{Refractory: 5 * time.Second},
	}, &reloadtest.Outbox{})
	s, verdict := dueCronJob(true)
	ended := actions.runs.run(t.Context(), &s, verdict, contentOf("1"))
	require.Nil(t, ended)
	s.Effects.NeedsRun = true
	assert.Positive(t, reloaded{s, verdict.Changes, record.LastReload{Hash: "2"}, 1}.close(t.Context(), actions.base).RequeueAfter, "it is looked at again")

	s, _ = dueCronJob(true)
	s.View.Managed = stamp.Managed{stamp.Hash: "2", stamp.LastReload: "2"}
	b.reload = "2"
	actions.state.Changes.EventArrived(s.Key, now)
	actions.state.Changes.BeginAttempt(s.Key)
	assert.Equal(t, 5*time.Second, actions.UpToDate(t.Context(), s).close(t.Context(), actions.base).RequeueAfter, "the runs keep their distance")
	assert.Len(t, b.jobs, 1)
	assert.False(t, actions.state.Changes.HasPending(s.Key), "the configuration is in order: the time to settle of a later change begins with that")
	now = now.Add(5 * time.Second)
	for range 2 {
		assert.Zero(t, actions.UpToDate(t.Context(), s).close(t.Context(), actions.base).RequeueAfter)
		assert.Len(t, b.jobs, 2, "once")
	}
}

// The content may change once more before the stamp, when another Job would be too soon. Then the stamp is stored, and its answer is lost.
func TestOwedRunIsMadeAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		direct  bool
		stamped string
		jobs    int
	}{
		"of a request":                         {stamped: "C", jobs: 2},
		"of a direct stamp":                    {direct: true, stamped: "C", jobs: 2},
		"the Job was made for what is stamped": {stamped: "B", jobs: 1},
		"the Job was made for a direct stamp":  {direct: true, stamped: "B", jobs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnstamped(t, true)
			u.run(t, "B")
			assert.Contains(t, u.unanswered(t, tc.direct, tc.stamped).Error(), "away")
			assert.Len(t, u.jobs, 1, "the runs keep their distance")

			stored := reloadtest.ReloadAt(u.now, "0")
			u.recorded, u.last = tc.stamped, &stored
			u.later()
			for range 2 {
				assert.Zero(t, u.inOrder(t))
				assert.Len(t, u.jobs, tc.jobs)
			}
		})
	}
}

// The answer to a stamp shows that it has the content of the Job: where the Record has no space, nothing else does.
func TestAnsweredStampOwesNoRun(t *testing.T) {
	t.Parallel()
	u := newUnstamped(t, true)
	u.run(t, "B")
	require.Error(t, u.unanswered(t, false, "B"))
	s, verdict := u.subject(t)
	require.Equal(t, state.DueRun, u.actions.state.Runs.Pending(s.CronJob()))
	s.Effects.Run.Job = "app-1"
	u.actions.Close(t.Context(), reloaded{s, verdict.Changes, record.LastReload{Hash: "2"}, 1})
	assert.Equal(t, state.NoRun, u.actions.state.Runs.Pending(s.CronJob()))

	u.later()
	assert.Zero(t, u.inOrder(t))
	assert.Len(t, u.jobs, 2, "a write of the earlier object has undone the stamp, and its content is back")
}

// unanswered asks for a stamp with a content, or makes it, without an answer.
func (u *unstamped) unanswered(t *testing.T, direct bool, content string) error {
	t.Helper()
	s, verdict := u.subject(t)
	s.View.Intent.Asked = true
	states := u.statesOf(content)
	recorded := strings.Replace(s.View.Managed[stamp.Record], "v1:0:", "v1:-:", 1) // what is read live has no stamp
	u.annotations = map[string]string{reloadList: "app", annotation.DefaultPrefix + "config-record": recorded}
	u.actions.gather.Keys, u.actions.gather.Store = &reloadtest.Keys{Present: u.ring}, &reloadtest.Store{States: states}
	var ended Outcome
	if direct {
		ended = u.actions.stamps.write(t.Context(), s, verdict)
	} else {
		ended = u.actions.requests.send(t.Context(), s, policy.Input{
			Namespace: "shop", Intent: s.View.Intent, Refs: s.View.Intent.Refs(), Known: s.View.Known(), Current: states, Ring: u.ring,
		}, verdict)
	}
	u.actions.Close(t.Context(), ended)
	require.IsType(t, failed{}, ended)
	return ended.(failed).failure.err
}
