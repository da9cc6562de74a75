package reload

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// ringOf returns a ring of keys that are made of one character each.
func ringOf(t testing.TB, keys string) digest.Ring {
	t.Helper()
	data := map[string][]byte{}
	for i, c := range []byte(keys) {
		key := make([]byte, 32)
		for at := range key {
			key[at] = c
		}
		data[string(rune('0'+i))] = key
	}
	ring, err := digest.NewRing(data)
	require.NoError(t, err)
	return ring
}

// sapReader reads the annotations of SAP's pod-reloader.
func sapReader(t testing.TB) stamp.Reader {
	t.Helper()
	keys, err := annotation.NewKeys(annotation.DefaultPrefix)
	require.NoError(t, err)
	return stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}}}
}

// viewOf returns the view of a Deployment that tracks configmap/app.
func viewOf(t *testing.T) stamp.View {
	t.Helper()
	kinds := workload.NewKinds(workload.Builtin()...).Find("deployment")
	require.Len(t, kinds, 1)
	view, problems := sapReader(t).Read(workload.Object{Kind: kinds[0], Raw: map[string]any{
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "generation": int64(3),
			"annotations": map[string]any{annotation.DefaultPrefix + "configmaps": "app"},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
	}})
	require.Empty(t, problems)
	return view
}

// stampedView returns the view of a Deployment that is known to have configmap/app with another content.
func stampedView(t *testing.T, ring digest.Ring) stamp.View {
	t.Helper()
	view := viewOf(t)
	newest, _ := ring.Newest()
	view.Managed[stamp.Record] = "v1:-:" + string(newest.ID) + ":configmap/app=0123456789abcdef"
	return view
}

func TestDirectWriteIsWhatTheWebhookWouldStamp(t *testing.T) {
	t.Parallel()
	ring := ringOf(t, "a")
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	states := map[reference.Ref]digest.State{app: {Absent: true}}
	result, err := played(stampedView(t, ring), stamp.Live{States: states, Ring: ring, Namespace: "shop", Now: time.Now()})
	require.NoError(t, err)
	assert.True(t, result.Stamped)
	assert.NotEmpty(t, result.Managed[stamp.Hash])
	assert.NotContains(t, result.Managed, stamp.Dummy)
}

func TestDirectWriteIsNoneWhereTheKeysChangeInBetween(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	content := digest.Content{Ref: app, Namespace: "shop"}
	states := map[reference.Ref]digest.State{app: digest.StateOf(content, "uid", "1", ringOf(t, "a"))}
	for _, ring := range []string{"ab", "b"} {
		_, err := played(stampedView(t, ringOf(t, "a")), stamp.Live{States: states, Ring: ringOf(t, ring), Namespace: "shop", Now: time.Now()})
		require.Error(t, err, "a rejection has no managed annotations: writing it would remove all of them")
	}
}

func TestDirectWriteBeyondTheBudgetFails(t *testing.T) {
	t.Parallel()
	states := map[reference.Ref]digest.State{{Kind: reference.ConfigMap, Name: "app"}: {Absent: true}}
	view := stampedView(t, ringOf(t, "a"))
	view.TemplateBudget = 10
	_, err := played(view, stamp.Live{States: states, Ring: ringOf(t, "a"), Namespace: "shop", Now: time.Now()})
	require.Error(t, err, "a reload that cannot be made is no reload that is done")
}

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
		"the state has moved on":            {outcome: poke.Conflict, budget: 10, failed: 100, reason: "ReloadFailed", soon: true},
		"the budget is below a stamp":       {outcome: poke.Current, budget: 10, reason: "ReloadFailed"},
		"a stamp is made and is not stored": {outcome: poke.Current, budget: 1000, failed: state.Persistent, reason: reasonLost},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := stampedView(t, ringOf(t, "a"))
			view.TemplateBudget = tc.budget
			s := gather.Subject{Key: workload.Key{Name: "web"}, View: view}
			l := newLoop(cluster{}, Options{})
			for range tc.failed {
				l.backoff.When(s.Key, state.Soon)
			}
			got := l.actions.unmoved(s, policy.Input{Intent: view.Intent, Refs: view.Intent.Refs(), Current: states, Ring: ringOf(t, "a")}, tc.outcome, nil)
			assert.Equal(t, tc.reason, got.reason, got.err)
			assert.Equal(t, tc.soon, got.soon, got.err)
			assert.Equal(t, tc.soon, got.quiet, "what passes by itself is not reported")
		})
	}
}

func TestLastReloadOfBeforeIsNoAnswer(t *testing.T) {
	t.Parallel()
	before := record.LastReload{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Hash: "abc", Cause: record.CauseConfigChange}
	again, other := before, before
	again.Time, other.Hash = again.Time.Add(time.Second), "def"
	s := gather.Subject{View: stamp.View{Managed: stamp.Managed{stamp.Hash: "abc", stamp.LastReload: before.String()}}}
	live := poke.Request{Digest: digest.Live}
	assert.True(t, reportedBefore(s, live, before), "nothing was reloaded")
	assert.False(t, reportedBefore(s, live, again))
	assert.False(t, reportedBefore(s, live, other))
	assert.False(t, reportedBefore(s, poke.Request{Digest: digest.Live, Generation: 3}, before), "the generation differs")
	assert.False(t, reportedBefore(s, poke.Request{Digest: "abc"}, before))
}

// fakeKeys is a keyring that Refresh gives a new ring.
type fakeKeys struct {
	ring, fresh digest.Ring
	err         error
}

func (k *fakeKeys) Ring() digest.Ring { return k.ring }

func (k *fakeKeys) Refresh(context.Context) error {
	k.ring = k.fresh
	return k.err
}

func (k *fakeKeys) OnChange(func()) {}

func TestForeignKeysAreTakenOverOnlyIfTheyAreGone(t *testing.T) {
	t.Parallel()
	one, two := ringOf(t, "a"), ringOf(t, "ab")
	newest, _ := ringOf(t, "b").Newest()
	foreign := newest.ID
	tests := map[string]struct {
		keys    *fakeKeys
		adopted bool
		may     bool
		soon    bool
	}{
		"the key is gone":              {keys: &fakeKeys{ring: one, fresh: one}, may: true},
		"the ring in memory was old":   {keys: &fakeKeys{ring: one, fresh: two}, soon: true},
		"the API server is away":       {keys: &fakeKeys{ring: one, fresh: one, err: errors.New("away")}, soon: true},
		"another installation is back": {keys: &fakeKeys{ring: one, fresh: one}, adopted: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(cluster{Dependencies: Dependencies{Keys: tc.keys}}, Options{})
			s := gather.Subject{Key: workload.Key{Name: "web"}}
			if tc.adopted {
				l.state.Takeovers.Done(s.Key, foreign)
			}
			got, may := l.actions.mayAdoptForeign(t.Context(), s, foreign)
			assert.Equal(t, tc.may, may)
			assert.Equal(t, tc.soon, got.soon)
			assert.Equal(t, tc.soon, got.quiet, "the user has nothing to do about what passes")
		})
	}
}

func TestReloadFromTheFutureDelaysTheNextOneOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newLoop(cluster{}, Options{Now: func() time.Time { return now }, Refractory: 5 * time.Second})
	last := record.LastReload{Time: now.Add(time.Hour), Hash: "abc", Cause: record.CauseConfigChange}
	s := gather.Subject{Key: workload.Key{Name: "web"}, View: stamp.View{Managed: stamp.Managed{stamp.Hash: "abc", stamp.LastReload: last.String()}}}
	l.state.Reports.See(s.Key, last.String(), now)
	wait, gate := l.pacing.gates.Wait(l.pacing.input(s))
	assert.Equal(t, 5*time.Second, wait, "a time in the future counts as now")
	assert.Equal(t, "refractory", gate)
	now = now.Add(5 * time.Second)
	wait, _ = l.pacing.gates.Wait(l.pacing.input(s))
	assert.Zero(t, wait, "but only once: the clock of the replica that wrote it may be wrong by hours")
}
