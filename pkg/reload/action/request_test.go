package action

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestUnmovedWorkloadIsExplained(t *testing.T) {
	t.Parallel()
	states := map[reference.Ref]digest.State{{Kind: reference.ConfigMap, Name: "app"}: {Absent: true}}
	tests := map[string]struct {
		outcome poke.Outcome
		failed  int
		budget  int
		reason  string
		soon    bool
	}{
		"another writer was faster":         {outcome: poke.Current, budget: 1000, reason: "ReloadFailed", soon: true},
		"the workload was changed":          {outcome: poke.Stale, budget: 10, failed: 100, reason: "ReloadFailed", soon: true},
		"the state has moved on":            {outcome: poke.Conflict, budget: 10, failed: 100, reason: "ReloadFailed", soon: true},
		"the budget is below a stamp":       {outcome: poke.Current, budget: 10, reason: "ReloadFailed"},
		"a stamp is made and is not stored": {outcome: poke.Current, budget: 1000, failed: state.Persistent, reason: reasonLost},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := reloadtest.StampedView(t, digesttest.Ring(t, "a"))
			view.TemplateBudget = tc.budget
			s := gather.Subject{Key: workload.Key{Name: "web"}, View: view}
			actions := newActions(Options{Gather: gather.Gatherer{Store: &reloadtest.Store{States: states}}}, &reloadtest.Outbox{})
			for range tc.failed {
				actions.backoff.When(s.Key, state.Soon)
			}
			in := policy.Input{
				Intent: view.Intent, Refs: view.Intent.Refs(), Known: view.Known(), Current: maps.Clone(states), Ring: digesttest.Ring(t, "a"),
			}
			got := actions.requests.explainNoReload(t.Context(), s, in, tc.outcome, nil)
			assert.Equal(t, tc.reason, got.reason, got.err)
			assert.Equal(t, tc.soon, got.soon, got.err)
			assert.Equal(t, tc.soon, got.quiet, "what passes by itself is not reported")
			assert.Equal(t, tc.outcome == poke.Conflict, got.conflict)
		})
	}
}

// A workload may be changed faster than a request for one of its generations is stored.
func TestRequestLeavesTheGenerationOpenOnAWorkloadThatChangesAllTheTime(t *testing.T) {
	t.Parallel()
	actions := newActions(Options{Gather: gather.Gatherer{Now: time.Now}}, &reloadtest.Outbox{})
	s := gather.Subject{Key: workload.Key{Name: "web"}, Object: reloadtest.Summary(workload.Deployment(), map[string]any{
		"metadata": map[string]any{"generation": int64(7)},
	})}
	for n := range int(state.FewConflicts) {
		assert.Equal(t, int64(7), actions.requests.newReloadRequest(s, policy.Input{}, "digest").Generation, "after %d stale answers", n)
		stale := actions.requests.explainNoReload(t.Context(), s, policy.Input{}, poke.Stale, nil)
		assert.EqualError(t, stale.err, "another writer has changed the workload before the write was stored")
		actions.backoff.When(s.Key, stale.pace())
	}
	live := actions.requests.newReloadRequest(s, policy.Input{}, digest.AnyCurrent)
	assert.Equal(t, int64(7), live.Generation, "the webhook accepts a request for the live state only for one generation")
	got := actions.requests.newReloadRequest(s, policy.Input{}, "digest")
	assert.Zero(t, got.Generation, "the digest is a proof for each generation")
	assert.Equal(t, "digest", got.Digest)
	for range state.FewConflicts {
		actions.backoff.When(s.Key, state.Conflict)
	}
	got = actions.requests.newReloadRequest(s, policy.Input{}, "digest")
	assert.Equal(t, int64(7), got.Generation, "a request for the live state proves nothing by its digest")
	assert.Equal(t, digest.AnyCurrent, got.Digest)
}

// A replica that has just started does not know the custom resource that this one knows.
func TestRequestAboutCustomResourcesAsksForTheLiveStateLater(t *testing.T) {
	t.Parallel()
	app, edge := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: "proxies.example.com", Name: "edge"}
	for name, tc := range map[string]struct {
		states  map[reference.Ref]digest.State
		changed time.Duration
		after   time.Duration
	}{
		"without one":                   {states: map[reference.Ref]digest.State{app: {Absent: true}}},
		"one that is held here":         {states: map[reference.Ref]digest.State{edge: {Hold: &digest.Hold{Reason: "not-ready"}}}},
		"one that is known":             {states: map[reference.Ref]digest.State{edge: {UID: "uid"}}, changed: stillChanging, after: 15 * time.Second},
		"one that changes all the time": {states: map[reference.Ref]digest.State{edge: {UID: "uid"}}, after: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}}, &reloadtest.Outbox{})
			s := gather.Subject{Key: workload.Key{Name: "web"}, Events: state.Arrivals{Last: now.Add(-tc.changed)}}
			in := policy.Input{Refs: slices.Collect(maps.Keys(tc.states)), Current: tc.states}
			waited := time.Duration(0)
			for !actions.requests.asksForLive(s, in) {
				waited += actions.backoff.When(s.Key, state.Conflict)
			}
			assert.InDelta(t, tc.after.Seconds(), waited.Seconds(), 1)
		})
	}
}

func TestLastReloadOfBeforeIsNoAnswer(t *testing.T) {
	t.Parallel()
	before := record.LastReload{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Hash: "abc", Cause: record.CauseConfigChange}
	again, other := before, before
	again.Time, other.Hash = again.Time.Add(time.Second), "def"
	s := gather.Subject{View: stamp.View{Managed: stamp.Managed{stamp.Hash: "abc", stamp.LastReload: before.String()}}}
	live := poke.Request{Digest: digest.AnyCurrent}
	assert.True(t, reportedBefore(s, live, before), "nothing was reloaded")
	assert.False(t, reportedBefore(s, live, again), "the last reload is of another time")
	assert.False(t, reportedBefore(s, live, other), "the last reload is of another hash")
	assert.False(t, reportedBefore(s, poke.Request{Digest: digest.AnyCurrent, Generation: 3}, before), "the generation differs")
	assert.True(t, reportedBefore(s, poke.Request{Digest: "abc"}, before), "the digest is that of an earlier reload")
}

func TestForeignKeysAreTakenOverOnlyIfTheyAreGone(t *testing.T) {
	t.Parallel()
	one, two := digesttest.Ring(t, "a"), digesttest.Ring(t, "ab")
	newest, _ := digesttest.Ring(t, "b").Newest()
	foreign := newest.ID
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		keys    *reloadtest.Keys
		adopted bool
		// hash: only the config-hash is under the key.
		hash    bool
		version string
		// may says that the Record is adopted, waits that the keys are read again first, soon that what is in the way passes.
		may, waits, soon bool
	}{
		"the key is gone":              {keys: &reloadtest.Keys{Present: one, Fresh: one, Began: now}, may: true},
		"the keys were read before":    {keys: &reloadtest.Keys{Present: one, Fresh: one, Began: now.Add(-1)}, waits: true},
		"the ring in memory was old":   {keys: &reloadtest.Keys{Present: one, Fresh: two, Began: now.Add(-1)}, soon: true},
		"the API server is away":       {keys: &reloadtest.Keys{Present: one, Fresh: one, Err: errors.New("away")}, soon: true},
		"another installation is back": {keys: &reloadtest.Keys{Present: one, Fresh: one}, adopted: true, version: "11"},
		"the watch is behind":          {keys: &reloadtest.Keys{Present: one, Fresh: one}, adopted: true, version: "9", soon: true},
		"the key of a hash is gone":    {keys: &reloadtest.Keys{Present: one, Fresh: one}, hash: true, may: true},
		"the key of a hash has come":   {keys: &reloadtest.Keys{Present: one, Fresh: two}, hash: true, soon: true},
		"the hash is back once more":   {keys: &reloadtest.Keys{Present: one, Fresh: one}, hash: true, adopted: true, version: "11", may: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actions := newActions(Options{Gather: gather.Gatherer{Keys: tc.keys, Now: func() time.Time { return now }}}, &reloadtest.Outbox{})
			s := gather.Subject{Key: workload.Key{Name: "web"}, Object: reloadtest.Summary(workload.Deployment(), map[string]any{
				"metadata": map[string]any{"resourceVersion": tc.version},
			})}
			if tc.adopted {
				actions.state.Takeovers.Record(s.Key, foreign, "10")
			}
			known := policy.Known{Record: record.New("", foreign, nil)}
			if tc.hash {
				known = policy.Known{Hash: digest.HashRecorded(foreign, nil)}
			}
			ended := actions.adoptions.checkForeign(t.Context(), s, known, foreign)
			assert.Equal(t, tc.may, ended == nil)
			waits, _ := ended.(Waiting)
			assert.Equal(t, tc.waits, waits.RequeueAfter > 0)
			got, _ := ended.(failed)
			assert.Equal(t, tc.soon, got.failure.soon)
			assert.Equal(t, tc.soon, got.failure.quiet, "the user has nothing to do about what passes")
			assert.Equal(t, tc.keys.Err != nil, got.failure.reason == reasonAdoptionFailed, "a hash may be of another program")
		})
	}
}

// The digest is over the content of what exists.
func TestExistingUnreadObjectIsReadForDigest(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	for name, tc := range map[string]struct {
		state digest.State
		want  []reference.Ref
	}{
		"not read": {digest.State{UID: "uid"}, []reference.Ref{app}},
		"read":     {digest.State{UID: "uid", Entries: map[digest.KeyID]digest.Entry{}}, nil},
		"absent":   {digest.State{Absent: true}, nil},
		"held":     {digest.State{Hold: &digest.Hold{Reason: "not-ready"}}, nil},
	} {
		got := unread(policy.Input{Refs: []reference.Ref{app}, Current: map[reference.Ref]digest.State{app: tc.state}})
		assert.Equal(t, tc.want, got, name)
	}
}

// The webhook of pod-reloader, other webhooks and the API server answer a request with the same code.
func TestConflictIsExplainedByWhereItComesFrom(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	in := policy.Input{Ring: digesttest.Ring(t, "a"), Refs: []reference.Ref{app}, Current: map[reference.Ref]digest.State{app: {Absent: true}}}
	modified := apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("the object has been modified"))
	mismatch := metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "the digest does not match"}
	locked := mismatch
	locked.Message = "locked"
	mismatch.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "DigestMismatch"}}}
	for name, tc := range map[string]struct {
		err   error
		first []string
		later string
		last  time.Duration
	}{
		"the digest does not match": {deniedBy(mismatch), nil, "the configuration keeps changing", 3 * time.Second},
		"another webhook denies it": {deniedBy(locked), []string{"request a reload of Deployment shop/web: " + deniedBy(locked).Error()}, "locked", 5 * time.Minute},
		"another write was faster":  {modified, nil, "the object has been modified", 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &reloadtest.Outbox{}
			c := &patched{err: tc.err}
			actions := newActions(Options{Gather: absentApp(t, c, in.Ring, now), Client: c, Webhook: true, Gates: state.Gates{Settle: time.Second}}, out)
			s := reloadtest.Web(t)
			s.Events.Last = now
			ask := func() time.Duration {
				return actions.requests.send(t.Context(), s, in, policy.Verdict{Action: policy.Reload}).close(t.Context(), actions.base).RequeueAfter
			}
			ask()
			assert.Equal(t, tc.first, out.Notes())
			last := time.Duration(0)
			for range 20 {
				last = ask()
			}
			assert.Contains(t, strings.Join(out.Notes(), "\n"), tc.later)
			assert.Equal(t, tc.last, last)
		})
	}
}

// A kind without generations shows the earlier last-reload after a request for the live state that has reloaded nothing.
func TestAnswerToARequestForTheLiveState(t *testing.T) {
	t.Parallel()
	const pending = "pod template updated, rollout pending (next scheduled run): "
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	app, other := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.Secret, Name: "other"}
	in := policy.Input{
		Ring: digesttest.Ring(t, "a"), Refs: []reference.Ref{app, other}, Current: map[reference.Ref]digest.State{app: {Absent: true}, other: {Absent: true}},
	}
	before, runs, stamps := reloadtest.ReloadAt(now.Add(-time.Hour), "abc"), reloadtest.ReloadAt(now, "abc"), reloadtest.ReloadAt(now, "abc")
	stamps.Changes = []record.Change{{Ref: other.String(), Type: record.Modified}}
	for name, tc := range map[string]struct {
		answer record.LastReload
		notes  []string
		owes   bool
	}{
		"nothing was reloaded":     {answer: before},
		"the workload was stamped": {answer: stamps, notes: []string{pending + "secret/other modified"}},
		"what runs the CronJob has changed, too": {
			answer: runs, notes: []string{pending + "configmap/app modified"}, owes: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := stored{uid: "u1", annotations: map[string]string{annotation.DefaultPrefix + "last-reload": tc.answer.String()}}
			c, out := &full{stored: stored}, &reloadtest.Outbox{}
			actions := newActions(Options{Gather: absentApp(t, c, in.Ring, now), Client: c, Webhook: true, Gates: state.Gates{Settle: time.Second}}, out)
			s, _ := dueCronJob(true)
			s = reloadtest.Reloaded(s, before)
			s.Events.Last = now
			s.View.TemplateBudget, s.View.WorkloadBudget = 1000, 1000
			s.View.Intent.Tracked[other] = annotation.Trigger{}
			seen := policy.Verdict{Action: policy.Reload, Changes: []policy.Change{{Ref: other, Type: policy.Modified}}}
			result := actions.requests.send(t.Context(), s, in, seen).close(t.Context(), actions.base)
			assert.Equal(t, tc.notes, out.Notes())
			assert.Equal(t, tc.notes == nil || tc.owes, result.RequeueAfter > 0)
			assert.Equal(t, tc.notes == nil, actions.backoff.Failing(s.Key), "it is tried again")
			assert.Equal(t, tc.owes, actions.state.Runs.Pending(s.CronJob()) == state.DueRun)
			assert.False(t, actions.state.Writes.IsCacheBehind(s.Key, 0, now), "without generations, that cannot be known")
		})
	}
}
