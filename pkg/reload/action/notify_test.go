package action

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// notifying returns Actions with --webhook-url, and a workload for which a reload would be due.
func notifying(t *testing.T, api *argoAPI, hash string) (*Actions, gather.Subject, policy.Input, *reloadtest.Outbox, *reloadtest.Alerts) {
	t.Helper()
	out, alerts := &reloadtest.Outbox{}, &reloadtest.Alerts{}
	actions, s, in := dueRollout(t, api, out, hash)
	actions.events = report.New(report.Options{Out: out, Alerts: alerts, State: actions.state, Now: actions.now})
	actions.gather.NotifyOnly = true
	return actions, s, in, out, alerts
}

// With a stamp on the template or without, one write makes the Change known, and no part of it restarts a pod.
func TestChangeIsReportedInsteadOfAReload(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]string{"stamped": "abc", "never stamped": "-"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &argoAPI{}
			actions, s, in, out, alerts := notifying(t, api, hash)
			verdict := policy.Assess(in).Verdict
			require.Equal(t, policy.Reload, verdict.Action)
			assert.Zero(t, actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions))
			require.Len(t, api.patches, 1)
			p := api.patches[0]
			assert.Equal(t, "7", p.Metadata.ResourceVersion, "of several leaders one writes")
			assert.Empty(t, p.Spec)
			key := annotation.DefaultPrefix + "config-record"
			require.Len(t, p.Metadata.Annotations, 1)
			if hash == "-" {
				hash = ""
			}
			in.Known = policy.KnownOf(hash, p.Metadata.Annotations[key])
			assert.Equal(t, policy.Nothing, policy.Assess(in).Verdict.Action, "it is not due any more")
			assert.Equal(t, []alert.Reload{{
				Time: actions.now(), Kind: "Rollout", Namespace: "shop", Name: "web", Cause: record.CauseConfigChange, NotReloaded: true,
				Changes: []alert.Change{{Kind: "configmap", Name: "app", Type: record.Created}},
			}}, alerts.Offered)
			assert.Equal(t, []string{"posted to --webhook-url, not reloaded: configmap/app created"}, out.Notes())
			assert.Equal(t, report.ReasonNotified, out.Messages[0].Event.Reason)
			requireContest(t, actions, s)
		})
	}
}

// What the webhook has not stored stays due, and is not reported.
func TestChangeThatIsNotRecordedIsNotReported(t *testing.T) {
	t.Parallel()
	actions, s, in, out, alerts := notifying(t, &argoAPI{restores: true}, "abc")
	result := actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions)
	assert.Positive(t, result.RequeueAfter)
	assert.Empty(t, alerts.Offered)
	assert.Empty(t, out.Notes())
}

// A CronJob is not run, and an Argo Rollout not restarted.
func TestNoKindIsReloadedWithNotifications(t *testing.T) {
	t.Parallel()
	for _, kind := range workload.Builtin() {
		if kind.CreateOnly {
			continue
		}
		api := &argoAPI{}
		actions, s, in, _, alerts := notifying(t, api, "abc")
		s.Object = reloadtest.Summary(kind, map[string]any{"metadata": map[string]any{"uid": "u1", "resourceVersion": "7", "generation": int64(3)}})
		for ref, trigger := range s.View.Intent.Tracked {
			trigger.AtOnce = true
			s.View.Intent.Tracked[ref] = trigger
		}
		s.View.Intent.PausePeriod = time.Minute
		actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions)
		assert.Len(t, alerts.Offered, 1, kind.Kind)
		require.Len(t, api.patches, 1, kind.Kind)
		assert.Empty(t, api.patches[0].Spec, kind.Kind)
	}
}
