package action

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// failedTest is the answer of the API server to a patch of which a test fails.
func failedTest() error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false)
}

// withPauses returns a Gatherer that reads the annotation with the period of a pause.
func withPauses(g gather.Gatherer) gather.Gatherer {
	g.Reader.Dialects = append(g.Reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	return g
}

// pausingDeployment is one whose reload, which is due, pauses it: as the loop sees it, and as it is stored.
func pausingDeployment(t *testing.T, ring digest.Ring, now time.Time) (web gather.Subject, raw []byte) {
	t.Helper()
	before := reloadtest.ReloadAt(now.Add(-time.Hour), "before")
	web = reloadtest.Reloaded(reloadtest.Web(t), before)
	web.Object = reloadtest.Summary(workload.Deployment(), map[string]any{"metadata": map[string]any{"uid": "u1", "generation": int64(5)}})
	web.View.Intent.PausePeriod = time.Minute
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": web.Object.UID(), "generation": web.Object.Generation(), "annotations": map[string]string{
				annotation.DefaultPrefix + "configmaps": "app", annotation.DefaultPrefix + "last-reload": before.String(),
				annotation.DefaultPrefix + "config-record":      recordOf(ring, before.Hash),
				"deployment.reloader.stakater.com/pause-period": "1m",
			},
		}, "spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]string{configHash: before.Hash}}}},
	})
	require.NoError(t, err)
	return web, raw
}

// What else a user may have changed is left open only where another writer raises the generation all the time, and then what is stored counts.
func TestEndOfAPauseLeavesTheGenerationOpenOnAWorkloadThatChangesAllTheTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile string
		ends      bool
	}{
		"something else has changed":  {ends: true},
		"the period is longer":        {meanwhile: `{"metadata":{"annotations":{"deployment.reloader.stakater.com/pause-period":"2h"}}}`},
		"the user has resumed it":     {meanwhile: `{"spec":{"paused":null}}`},
		"another pause has begun":     {meanwhile: `{"metadata":{"annotations":{"` + pausedAt + `":"2026-01-02T03:04:08Z"}}}`},
		"the pause is the user's now": {meanwhile: `{"metadata":{"annotations":{"` + pausedAt + `":null}}}`},
		"it was created again":        {meanwhile: `{"metadata":{"uid":"u2"}}`},
		"it has left the scope":       {meanwhile: `{"metadata":{"labels":{"tier":"other"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			begun := now.Add(-time.Hour).Format(time.RFC3339)
			stored := &unserved{raw: []byte(`{"metadata":{"namespace":"shop","name":"web","uid":"u1","generation":6,"annotations":{
				"` + annotation.DefaultPrefix + `configmaps":"app","deployment.reloader.stakater.com/pause-period":"1s","` + pausedAt + `":"` + begun + `"}},
				"spec":{"paused":true,"template":{}}}`)}
			require.NoError(t, stored.merge(tc.meanwhile))
			c := &patched{err: failedTest()}
			g := withPauses(gather.Gatherer{Reader: reloadtest.Reader(), APIReader: stored, Now: func() time.Time { return now }})
			actions := newActions(Options{Gather: g, Client: c, InScope: notOther, PausedAt: pausedAt}, &reloadtest.Outbox{})
			for range state.FewConflicts + 1 {
				_, ended := actions.EndPause(t.Context(), pausedDeployment(t, time.Second, true, begun))
				require.IsType(t, failed{}, ended)
				assert.Positive(t, ended.close(t.Context(), actions.base).RequeueAfter)
				require.ErrorContains(t, ended.(failed).failure.err, errOvertaken.Error())
				now = now.Add(time.Second)
			}
			sent := int(state.FewConflicts)
			if tc.ends {
				sent++
			}
			require.Len(t, c.bodies, sent)
			for n, body := range c.bodies {
				assert.Equal(t, n < int(state.FewConflicts), strings.Contains(body, "generation"), "after %d lost races", n)
				assert.Contains(t, body, `/spec/paused","value":true`, "a pause that has ended, and that of a user, remain as they are")
			}
		})
	}
}

// A user, or an earlier leader, has changed the Deployment since it was read.
func TestReloadPausesOnlyWhatItHasSeen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		meanwhile string
		overtaken bool
		stored    bool
	}{
		"nothing has changed":                      {stored: true},
		"nothing that matters has changed":         {overtaken: true, stored: true, meanwhile: `{"metadata":{"generation":6}}`},
		"the generation has changed":               {meanwhile: `{"metadata":{"generation":6}}`},
		"the user has paused it":                   {overtaken: true, meanwhile: `{"metadata":{"generation":6},"spec":{"paused":true}}`},
		"another reload has paused it":             {overtaken: true, meanwhile: `{"metadata":{"generation":6,"annotations":{"` + pausedAt + `":"2026-01-02T03:04:00Z"}}}`},
		"another reload was faster":                {overtaken: true, meanwhile: `{"metadata":{"generation":6,"annotations":{"` + annotation.DefaultPrefix + `last-reload":"{}"}}}`},
		"it was deleted and created again":         {overtaken: true, meanwhile: `{"metadata":{"uid":"u2"}}`},
		"the user has removed all its annotations": {overtaken: true, meanwhile: `{"metadata":{"generation":6,"annotations":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			ring := digesttest.Ring(t, "a")
			web, raw := pausingDeployment(t, ring, now)
			changed := &unserved{raw: raw}
			require.NoError(t, changed.merge(tc.meanwhile))
			c := &unserved{raw: raw, read: tc.meanwhile, purges: `{"metadata":{"annotations":{"` + configHash + `":null}}}`}
			if !tc.overtaken { // it is not read again
				c.raw = changed.raw
			}
			actions := newActions(Options{
				Gather: withPauses(absentApp(t, c, ring, now)), Client: c, Webhook: true, InScope: notOther, PausedAt: pausedAt,
			}, &reloadtest.Outbox{})
			for range state.FewConflicts {
				if tc.overtaken {
					actions.backoff.When(web.Key, state.Overtaken)
				}
			}
			ended := actions.requests.send(t.Context(), web, policy.Input{Ring: ring}, policy.Verdict{})
			require.IsType(t, failed{}, ended)
			f := ended.(failed).failure
			assert.Equal(t, !tc.stored, f.overtaken)
			assert.Equal(t, tc.stored, f.stored)
			if !tc.stored {
				assert.True(t, f.soon && f.quiet, "it passes by itself")
				assert.JSONEq(t, string(changed.raw), string(c.raw))
				assert.EqualError(t, f.err, "another writer has changed the workload before the write was stored")
			}
		})
	}
}

// The cache may be behind by more than what the other writer does. A request for each generation would be handled all the same.
func TestRequestForEachGenerationIsDecidedFromWhatIsStored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stored    string // what has changed
		requested bool
		paused    bool // by the request
	}{
		"nothing":                      {paused: true, requested: true},
		"it is not to be paused":       {stored: `{"metadata":{"annotations":{"deployment.reloader.stakater.com/pause-period":null}}}`, requested: true},
		"it is to be left alone":       {stored: `{"metadata":{"labels":{"` + annotation.DefaultPrefix + `ignored":"true"}}}`},
		"it asks for no reloads":       {stored: `{"metadata":{"annotations":{"` + annotation.DefaultPrefix + `configmaps":null}}}`},
		"it was created again":         {stored: `{"metadata":{"uid":"u2"}}`},
		"it has left the scope":        {stored: `{"metadata":{"labels":{"tier":"other"}}}`},
		"nothing is known of its pods": {stored: `{"metadata":{"annotations":{"` + annotation.DefaultPrefix + `config-record":null}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			ring := digesttest.Ring(t, "a")
			web, raw := pausingDeployment(t, ring, now)
			c := &unserved{raw: raw}
			require.NoError(t, c.merge(tc.stored))
			actions := newActions(Options{
				Gather: withPauses(absentApp(t, c, ring, now)), Client: c, Webhook: true, InScope: notOther, PausedAt: pausedAt,
			}, &reloadtest.Outbox{})
			for range state.FewConflicts {
				actions.backoff.When(web.Key, state.Overtaken)
			}
			in := policy.Input{Ring: ring}
			actions.requests.send(t.Context(), web, in, policy.Verdict{Action: policy.Reload})
			assert.Equal(t, tc.requested, c.writes > 0)
			assert.Equal(t, tc.paused, strings.Contains(string(c.raw), `"paused":true`), string(c.raw))
		})
	}
}
