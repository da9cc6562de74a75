package action

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/logtest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

const pausedAt = "deployment.reloader.stakater.com/paused-at"

// pausedDeployment is one that asks for a pause, in a state.
func pausedDeployment(t *testing.T, period time.Duration, paused bool, since string, others ...map[string]string) gather.Subject {
	t.Helper()
	annotations := map[string]any{}
	for _, other := range others {
		for key, value := range other {
			annotations[key] = value
		}
	}
	if since != "" {
		annotations[pausedAt] = since
	}
	s := reloadtest.Web(t)
	s.Object = reloadtest.Summary(workload.Deployment(), map[string]any{
		"metadata": map[string]any{"uid": "u1", "generation": int64(5), "annotations": annotations},
		"spec":     map[string]any{"paused": paused},
	})
	s.View.Intent.PausePeriod = period
	return s
}

// patched keeps the bodies of the patches, and may refuse them.
type patched struct {
	client.Client
	err    error
	bodies []string
}

func (p *patched) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(obj)
	if err != nil {
		return err
	}
	p.bodies = append(p.bodies, string(body))
	obj.SetGeneration(9)
	return p.err
}

func TestPauseIsEndedInTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	begun := now.Add(-10 * time.Second).Format(time.RFC3339)
	const at = `"path":"/metadata/annotations/deployment.reloader.stakater.com~1paused-at"`
	pinned := func(paused string) string {
		return `[{"op":"test","path":"/metadata/uid","value":"u1"}, {"op":"test","path":"/spec/paused","value":` + paused + `},
			{"op":"test",` + at + `,"value":"` + begun + `"}, {"op":"test","path":"/metadata/generation","value":5}, {"op":"remove",` + at + `}`
	}
	for name, tc := range map[string]struct {
		period time.Duration
		paused bool
		since  string
		wait   time.Duration
		body   string
		note   string
	}{
		"no pause":          {period: time.Minute},
		"a user's pause":    {period: time.Minute, paused: true},
		"the pause lasts":   {period: time.Minute, paused: true, since: begun, wait: 50 * time.Second},
		"the pause is over": {period: time.Second, paused: true, since: begun, body: pinned("true") + `, {"op":"remove","path":"/spec/paused"}]`, note: "resumed: the pause is over, and updates of the pod template since " + begun + " roll out"},
		"ended by a user":   {period: time.Minute, since: begun, body: pinned("null") + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, out := &patched{}, &reloadtest.Outbox{}
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}, Client: c, PausedAt: pausedAt}, out)
			s := pausedDeployment(t, tc.period, tc.paused, tc.since)
			wait, ended := actions.EndPause(t.Context(), s)
			assert.Equal(t, tc.wait, wait)
			assert.Equal(t, tc.body != "", ended != nil)
			if tc.body != "" {
				assert.Equal(t, Waiting{}, ended, "the watch brings it back")
				require.Len(t, c.bodies, 1)
				assert.JSONEq(t, tc.body, c.bodies[0])
				_, ended = actions.EndPause(t.Context(), s)
				assert.Len(t, c.bodies, 1, "the cache has not shown the write yet")
				require.NotNil(t, ended)
				assert.Positive(t, ended.close(t.Context(), actions.base).RequeueAfter)
			}
			if tc.note != "" {
				assert.Equal(t, []string{tc.note}, out.Notes())
			}
		})
	}
}

// Each change of a configuration that changes all the time would be one more attempt.
func TestEndOfAPauseThatFailsHasAPace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &patched{err: errors.New("no answer")}
	actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}, Client: c, PausedAt: pausedAt}, &reloadtest.Outbox{})
	s := pausedDeployment(t, time.Second, true, now.Add(-10*time.Second).Format(time.RFC3339))
	end := func() time.Duration {
		_, ended := actions.EndPause(t.Context(), s)
		require.NotNil(t, ended)
		return ended.close(t.Context(), actions.base).RequeueAfter
	}
	wait := end()
	assert.Equal(t, wait, end())
	assert.Len(t, c.bodies, 1)
	now = now.Add(wait)
	assert.Greater(t, end(), wait)
	assert.Len(t, c.bodies, 2)
}

// Reloader can run as well, and its pauses have the same annotations.
func TestPauseWhosePeriodNoDialectReadsIsEndedOnlyAfterAReload(t *testing.T) {
	t.Parallel()
	const period = "deployment.reloader.stakater.com/pause-period"
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		period   string
		reloaded bool
		since    bool
		wait     time.Duration
		ended    bool
	}{
		"over":                    {period: "30m", reloaded: true, since: true, ended: true},
		"the pause lasts":         {period: "3h", reloaded: true, since: true, wait: 2 * time.Hour},
		"no period any more":      {reloaded: true, since: true, ended: true},
		"the period is no period": {period: "some time", reloaded: true, since: true},
		"a pause of Reloader":     {period: "30m", since: true},
		"without a period":        {since: true},
		"a pause of the user":     {period: "30m", reloaded: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			since := ""
			if tc.since {
				since = now.Add(-time.Hour).Format(time.RFC3339)
			}
			c := &patched{}
			actions := newActions(Options{
				Gather: gather.Gatherer{Now: func() time.Time { return now }}, Client: c, PausedAt: pausedAt, UnreadPausePeriod: period,
			}, &reloadtest.Outbox{})
			annotations := map[string]string{}
			if tc.period != "" {
				annotations[period] = tc.period
			}
			s := pausedDeployment(t, 0, true, since, annotations)
			if tc.reloaded {
				s.View.Managed[stamp.LastReload] = "x"
			}
			wait, ended := actions.EndPause(t.Context(), s)
			assert.Equal(t, tc.wait, wait)
			assert.Equal(t, tc.ended, ended != nil)
			assert.Equal(t, tc.ended, len(c.bodies) == 1)
		})
	}
}

// freeze is the answer of an admission policy that lets no pause end.
func freeze() error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("a freeze"))
}

// A policy may refuse the end of a pause for long, and let a stamp pass.
func TestRefusedEndOfPauseHoldsUpNoReload(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &patched{err: freeze()}
	out := &reloadtest.Outbox{}
	actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}, Client: c, PausedAt: pausedAt}, out)
	s := pausedDeployment(t, time.Second, true, now.Add(-time.Hour).Format(time.RFC3339))
	for attempt, want := range []time.Duration{time.Second, time.Second, 2 * time.Second} {
		wait, ended := actions.EndPause(t.Context(), s)
		assert.Nil(t, ended, "what else is due goes on")
		assert.Equal(t, want, wait)
		if attempt > 0 {
			now = now.Add(wait)
		}
	}
	assert.Len(t, c.bodies, 2, "the second look comes before the wait is over")
	require.Len(t, out.Notes(), 1)
	assert.Contains(t, out.Notes()[0], "a freeze")
	c.err = nil
	resumed := pausedDeployment(t, time.Second, false, now.Add(-time.Hour).Format(time.RFC3339))
	_, ended := actions.EndPause(t.Context(), resumed)
	assert.Equal(t, Waiting{}, ended, "a user has resumed it: a pause of the user that follows must not be ended")
	assert.False(t, actions.state.Resumes.Ended(s.Key), "nothing is remembered of the refused end of the pause")
}

// An API server that has just started refuses everything, also the end of a pause. It may be away, and start again.
func TestRefusedEndOfPauseIsReportedOnceThatLasts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, out := &patched{err: forbidden("Deployment")}, &reloadtest.Outbox{}
	actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}, Client: c, PausedAt: pausedAt}, out)
	s := pausedDeployment(t, time.Second, true, now.Add(-time.Hour).Format(time.RFC3339))
	logger, lines := logtest.New()
	ctx := log.IntoContext(t.Context(), logger)
	attempt := func(err error) {
		c.err = err
		wait, ended := actions.EndPause(ctx, s)
		assert.Equal(t, wait == 0, ended != nil)
		now = now.Add(wait)
	}
	for range untilReported - 1 {
		attempt(forbidden("Deployment"))
	}
	attempt(errors.New("away"))
	now = now.Add(time.Hour)
	attempt(forbidden("Deployment"))
	assert.Empty(t, out.Notes())
	assert.Empty(t, lines())
	attempt(forbidden("Deployment"))
	assert.Len(t, out.Notes(), 1)
	assert.Equal(t, 1, lines.Count("cannot end the pause"))
}

// What was reported is taken back where a user has removed the annotation.
func TestRefusedEndOfPauseIsForgottenWithThePause(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &patched{err: freeze()}
	out := &reloadtest.Outbox{}
	actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}, Client: c, PausedAt: pausedAt}, out)
	s := pausedDeployment(t, time.Second, true, now.Add(-time.Hour).Format(time.RFC3339))
	for range 2 {
		wait, _ := actions.EndPause(t.Context(), s)
		assert.Equal(t, time.Second, wait, "the first refusal of each pause")
		_, ended := actions.EndPause(t.Context(), pausedDeployment(t, time.Second, false, ""))
		assert.Nil(t, ended)
	}
	assert.Len(t, out.Notes(), 2, "each is reported")
}

// The direct stamp pauses in the same patch; the webhook's, in the request for it.
func TestReloadPauses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	actions := newActions(Options{
		Gather: gather.Gatherer{Reader: reloadtest.Reader(), Now: func() time.Time { return now }}, PausedAt: pausedAt,
	}, &reloadtest.Outbox{})
	s := pausedDeployment(t, time.Minute, false, "")
	const at = "/metadata/annotations/deployment.reloader.stakater.com~1paused-at"
	absent := json.RawMessage("null")
	begins := []jsonpatch.Operation{
		jsonpatch.NewOperation("test", "/metadata/uid", "u1"),
		jsonpatch.NewOperation("test", "/spec/paused", absent),
		jsonpatch.NewOperation("test", at, absent),
		jsonpatch.NewOperation("test", "/metadata/annotations/pod-reloader.cs.sap.com~1last-reload", absent),
		jsonpatch.NewOperation("add", at, "2026-01-02T03:04:05Z"),
		jsonpatch.NewOperation("add", "/spec/paused", true),
	}
	assert.Equal(t, begins, actions.pauses.begin(s, 0))
	bound := slices.Insert(begins, 3, jsonpatch.NewOperation("test", "/metadata/generation", int64(5)))
	assert.Equal(t, bound, actions.pauses.begin(s, 5))
	operations := actions.pauses.beginDirectly(s, s.Object, stamp.Result{Stamped: true}).operations
	assert.Empty(t, actions.pauses.beginDirectly(s, s.Object, stamp.Result{}), "nothing is reloaded")
	require.Len(t, operations, 2)
	assert.Equal(t, at, operations[0].Path)
	assert.Equal(t, "2026-01-02T03:04:05Z", operations[0].Value)
	assert.Equal(t, "/spec/paused", operations[1].Path)

	for name, other := range map[string]gather.Subject{
		"a user has paused it":    pausedDeployment(t, time.Minute, true, ""),
		"a period has begun":      pausedDeployment(t, time.Minute, true, "2026-01-02T03:04:00Z"),
		"no period was asked for": pausedDeployment(t, 0, false, ""),
	} {
		assert.Nil(t, actions.pauses.begin(other, 5), name)
		assert.Empty(t, actions.pauses.beginDirectly(other, other.Object, stamp.Result{Stamped: true}), name)
	}
	stateful := s
	stateful.Object.Kind = workload.StatefulSet()
	require.False(t, stateful.Object.Kind.Pausable(), "a StatefulSet has no field spec.paused")
	assert.Nil(t, actions.pauses.begin(stateful, 5), "a kind without pauses")
	actions.pauses.at = ""
	assert.Nil(t, actions.pauses.begin(s, 5), "no pauses of ours")
}

// configHash is the annotation with a reload request, and with the hash of a template.
const configHash = annotation.DefaultPrefix + "config-hash"

// Another writer sets the annotation of a pause again after each removal: the reload does not wait for the next one.
func TestContestedPauseHoldsUpNoReload(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, paused := range map[string]bool{"not paused": false, "paused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, out := &patched{}, &reloadtest.Outbox{}
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}, Client: c, PausedAt: pausedAt}, out)
			s := pausedDeployment(t, time.Second, paused, now.Add(-time.Hour).Format(time.RFC3339))
			for range 3 {
				actions.state.Contests.Removed(s.Key, pausedAt, now)
			}
			for range 2 {
				wait, ended := actions.EndPause(t.Context(), s)
				assert.Equal(t, time.Second, wait)
				assert.Nil(t, ended, "the reconciliation goes on")
			}
			assert.Empty(t, c.bodies)
			require.Len(t, out.Messages, 1)
			assert.Equal(t, "PauseContested", out.Messages[0].Event.Reason)
			assert.Contains(t, out.Notes()[0], pausedAt)
		})
	}
}

// What the loop sets itself is no other writer's: many reloads in a row, each with a pause, make no contest.
func TestAnnotationsOfAReloadMakeNoContest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, webhook := range map[string]bool{"a request": true, "a direct stamp": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ring := digesttest.Ring(t, "a")
			web, raw := pausingDeployment(t, ring, now)
			c := &unserved{raw: raw}
			with := absentApp(t, c, ring, now)
			with.Reader = bothDialects(t)
			actions := newActions(Options{Gather: with, Client: c, Webhook: webhook, PausedAt: pausedAt}, &reloadtest.Outbox{})
			for range 3 {
				actions.state.Contests.Removed(web.Key, pausedAt, now)
				actions.state.Contests.Removed(web.Key, configHash, now)
			}
			actions.Reload(t.Context(), web, policy.Input{Ring: ring}, policy.Verdict{})
			require.Contains(t, string(c.raw), pausedAt)
			assert.Zero(t, actions.state.Contests.WaitToRemove(web.Key, pausedAt, now))
			assert.Equal(t, webhook, actions.state.Contests.WaitToRemove(web.Key, configHash, now) == 0)
		})
	}
}

// A request pauses the Deployment in the same write. The webhook reads what is stored: it may find that no reload is due.
func TestPauseWithoutAReloadIsTakenBack(t *testing.T) {
	t.Parallel()
	purges := `{"metadata":{"annotations":{"` + configHash + `":null}}}`
	for name, tc := range map[string]struct {
		webhook, requested string
		denied             error
		remains            bool
	}{
		"no webhook is called, and a policy denies the direct stamp":        {denied: freeze()},
		"no webhook is called, and the direct stamp is tried again soon":    {denied: apierrors.NewTooManyRequests("busy", 1), remains: true},
		"no webhook is called, and the answer to the direct stamp was lost": {denied: errors.New("away"), remains: true},
		"the webhook finds nothing due":                                     {webhook: purges},
		"no webhook is called, and it has left the scope":                   {requested: `{"metadata":{"labels":{"tier":"other"}}}`},
		"no webhook is called, and it asks for nothing":                     {requested: `{"metadata":{"annotations":{"` + annotation.DefaultPrefix + `configmaps":null}}}`},
		"no webhook is called, and the loop stamps directly":                {remains: true},
		"a user pauses it at another time":                                  {webhook: purges, requested: `{"metadata":{"annotations":{"` + pausedAt + `":"2026-01-02T03:00:00Z"}}}`, remains: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			ring := digesttest.Ring(t, "a")
			web, raw := pausingDeployment(t, ring, now)
			c := &unserved{raw: raw, purges: tc.webhook, requested: tc.requested, denied: tc.denied}
			actions := newActions(Options{
				Gather: absentApp(t, c, ring, now), Client: c, Webhook: true, InScope: notOther, PausedAt: pausedAt,
			}, &reloadtest.Outbox{})
			ctx, remedies := countRemedies(t)
			ended := actions.requests.send(ctx, web, policy.Input{Ring: ring}, policy.Verdict{})
			assert.Zero(t, *remedies, "who follows one would end the pause of a user")
			if f, fails := ended.(failed); fails {
				assert.True(t, f.failure.stored, "its own writes would end the wait")
			}
			stored := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(c.raw, &stored.Object))
			paused, _, _ := unstructured.NestedBool(stored.Object, "spec", "paused")
			assert.Equal(t, tc.remains, paused)
			assert.Equal(t, tc.remains, stored.GetAnnotations()[pausedAt] != "")
		})
	}
}
