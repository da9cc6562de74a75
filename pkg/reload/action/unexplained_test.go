package action

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// Another webhook, called after ours, keeps no last-reload: the template alone shows the reload that was asked for.
func TestReloadIsReportedWhereLastReloadIsRemoved(t *testing.T) {
	t.Parallel()
	ring, app := digesttest.Ring(t, "a"), reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	newest, _ := ring.Newest()
	states := map[reference.Ref]digest.State{app: {Absent: true}}
	due, err := digest.Hash(newest.ID, states)
	require.NoError(t, err)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	recorded := "v1:" + due + ":" + string(newest.ID) + ":configmap/app=-"
	for name, tc := range map[string]struct {
		hash, record, last string
		// writes of users have come between, before our stamp and after it.
		writes, later int64
		// without says that the kind has no generations.
		without  bool
		reloaded bool
	}{
		"removed":                            {hash: due, reloaded: true},
		"removed beside the Record":          {hash: due, record: recorded, reloaded: true},
		"removed from a kind without them":   {hash: due, record: recorded, without: true, reloaded: true},
		"both removed from such a kind":      {hash: due, without: true, reloaded: true},
		"replaced by a constant":             {hash: due, last: "constant", reloaded: true},
		"replaced by an earlier one":         {hash: due, last: reloadtest.ReloadAt(now.Add(-time.Hour), "before").String(), reloaded: true},
		"the reload of another writer":       {hash: due, last: reloadtest.ReloadAt(now, due).String()},
		"the stamp is removed, too":          {},
		"nothing was stamped":                {hash: "present"},
		"another writer has stamped another": {hash: "other"},
		"a user's write has brought it":      {hash: due, record: recorded, writes: 1},
		"an undo came first":                 {hash: due, record: strings.Replace(recorded, "app=", "app~", 1)},
		"a user has written after it":        {hash: due, record: recorded, later: 1, reloaded: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web, out := reloadtest.Web(t), &reloadtest.Outbox{}
			c := &full{stored: stored{hash: tc.hash, uid: types.UID(web.Object.UID()), annotations: map[string]string{
				annotation.DefaultPrefix + "configmaps": "app", annotation.DefaultPrefix + "config-record": tc.record, annotation.DefaultPrefix + "last-reload": tc.last,
			}}}
			if !tc.without {
				c.generation, c.later = 4+tc.writes, tc.later
				web.Object = reloadtest.Summary(web.Object.Kind, map[string]any{"metadata": map[string]any{"uid": web.Object.UID(), "generation": int64(3)}})
			}
			web.View.WorkloadBudget = 1000
			web.View.Managed[stamp.Hash], web.View.Managed[stamp.Record] = "present", recordOf(ring, "present")
			actions := newActions(Options{Gather: absentApp(t, c, ring, now), Client: c, Webhook: true}, out)
			in := policy.Input{
				Namespace: "shop", Intent: web.View.Intent, Refs: web.View.Intent.Refs(), Known: web.View.Known(), Current: states, Ring: ring,
			}
			for range 2 {
				result := actions.requests.send(t.Context(), web, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
				assert.Equal(t, tc.reloaded, result.RequeueAfter == 0)
			}
			if !tc.reloaded {
				assert.Empty(t, out.Messages)
				return
			}
			assert.Equal(t, []string{reloadUnrecorded, "pod template updated: configmap/app deleted"}, out.Notes(), "each once")
			assert.Equal(t, now, actions.state.Writes.StampedAt(web.Key), "the refractory time begins")

			reloaded{web, nil, reloadtest.ReloadAt(now, "next"), 5}.close(t.Context(), actions.base)
			assert.False(t, actions.state.Warnings.IsWarned(web.Key, reasonReloadUnrecorded, state.DigestOf(reloadUnrecorded)), "the next one is stored")
		})
	}
}

// In direct mode, too, last-reload may not be what was written: it does not fit, or a webhook that is back has removed it, or the stamp as well.
func TestDirectStampIsReportedWhereLastReloadIsNotStored(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before, last := reloadtest.ReloadAt(now.Add(-time.Hour), "before").String(), reloadtest.ReloadAt(now, "due").String()
	const updated = "pod template updated: configmap/app modified"
	for name, tc := range map[string]struct {
		before, stored, hash string
		// full says that last-reload does not fit.
		full  bool
		notes []string
	}{
		"stored":                  {stored: last, hash: "due", notes: []string{updated}},
		"removed":                 {hash: "due", notes: []string{reloadUnrecorded, updated}},
		"removed, not the first":  {before: before, hash: "due", notes: []string{reloadUnrecorded, updated}},
		"the earlier one kept":    {before: before, stored: before, hash: "due", notes: []string{reloadUnrecorded, updated}},
		"a constant":              {stored: "constant", hash: "due", notes: []string{reloadUnrecorded, updated}},
		"the stamp undone":        {hash: "before"},
		"all undone":              {before: before, stored: before, hash: "before"},
		"full":                    {full: true, hash: "due", notes: []string{updated}},
		"full, and stored":        {full: true, stored: last, hash: "due", notes: []string{updated}},
		"full, the stamp undone":  {full: true, hash: "before"},
		"full, both put back":     {full: true, before: before, stored: before, hash: "before"},
		"full, the earlier there": {full: true, before: before, stored: before, hash: "due", notes: []string{updated}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web, out := reloadtest.Web(t), &reloadtest.Outbox{}
			web.View.Managed[stamp.Hash], web.View.Managed[stamp.LastReload] = "before", tc.before
			c := &stored{hash: tc.hash, uid: types.UID(web.Object.UID()), annotations: map[string]string{annotation.DefaultPrefix + "last-reload": tc.stored}}
			actions := newActions(Options{Gather: absentApp(t, c, digesttest.Ring(t, "a"), now)}, out)
			answer := &metav1.PartialObjectMetadata{}
			answer.SetAnnotations(c.annotations)
			decided := stamp.Result{Stamped: true, Managed: stamp.Managed{stamp.Hash: "due", stamp.LastReload: last}}
			if tc.full {
				decided.Unwritten = last
				delete(decided.Managed, stamp.LastReload)
			}
			ended := actions.stamps.stamped(t.Context(), web, policy.Verdict{}, directStamp{before: web.View.Managed, decided: decided, answer: answer})
			ended.close(t.Context(), actions.base)
			assert.Equal(t, tc.notes, out.Notes())
			if tc.notes == nil {
				assert.IsType(t, failed{}, ended)
				return
			}
			assert.Equal(t, now, actions.state.Writes.StampedAt(web.Key), "the refractory time begins")
			assert.Equal(t, record.HashName("due"), ended.(reloaded).last.Hash)
			assert.Equal(t, tc.stored != last, ended.(reloaded).subject.Effects.Unwritten)
		})
	}
}
