package reload

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
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// notifying is a loop with --webhook-url, and a workload for which a reload would be due.
func notifying(t *testing.T, api *argoAPI, hash string) (*loop, gather.Subject, policy.Input, *sent, *offered) {
	t.Helper()
	out, alerts := &sent{}, &offered{}
	l, s, in := dueRollout(t, cluster{client: api, events: out, Dependencies: Dependencies{Alerts: alerts}}, hash)
	l.actions.gather.NotifyOnly = true
	return l, s, in, out, alerts
}

// With a stamp on the template or without, one write makes the Change known, and no part of it restarts a pod.
func TestChangeIsReportedInsteadOfAReload(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]string{"stamped": "abc", "never stamped": "-"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &argoAPI{}
			l, s, in, out, alerts := notifying(t, api, hash)
			a := policy.Assess(in)
			require.Equal(t, policy.Reload, a.Verdict.Action)
			assert.Zero(t, l.apply(t.Context(), s, in, a).close(t.Context(), l.actions))
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
				Time: l.now(), Kind: "Rollout", Namespace: "shop", Name: "web", Cause: record.CauseConfigChange, NotReloaded: true,
				Changes: []alert.Change{{Kind: "configmap", Name: "app", Type: record.Created}},
			}}, alerts.alerts)
			assert.Equal(t, []string{"posted to --webhook-url, not reloaded: configmap/app created"}, out.notes())
			assert.Equal(t, report.ReasonNotified, out.messages[0].Event.Reason)
		})
	}
}

// What the webhook has not stored stays due, and is not reported.
func TestChangeThatIsNotRecordedIsNotReported(t *testing.T) {
	t.Parallel()
	l, s, in, out, alerts := notifying(t, &argoAPI{restores: true}, "abc")
	result := l.apply(t.Context(), s, in, policy.Assess(in)).close(t.Context(), l.actions)
	assert.Positive(t, result.RequeueAfter)
	assert.Empty(t, alerts.alerts)
	assert.Empty(t, out.notes())
}

// A CronJob is not run, and an Argo Rollout not restarted.
func TestNoKindIsReloadedWithNotifications(t *testing.T) {
	t.Parallel()
	for _, kind := range workload.Builtin() {
		if kind.CreateOnly {
			continue
		}
		api := &argoAPI{}
		l, s, in, _, alerts := notifying(t, api, "abc")
		s.Object = summaryOf(kind, map[string]any{"metadata": map[string]any{"uid": "u1", "resourceVersion": "7", "generation": int64(3)}})
		for ref, trigger := range s.View.Intent.Tracked {
			trigger.AtOnce = true
			s.View.Intent.Tracked[ref] = trigger
		}
		s.View.Intent.PausePeriod = time.Minute
		l.apply(t.Context(), s, in, policy.Assess(in)).close(t.Context(), l.actions)
		assert.Len(t, alerts.alerts, 1, kind.Kind)
		require.Len(t, api.patches, 1, kind.Kind)
		assert.Empty(t, api.patches[0].Spec, kind.Kind)
	}
}
