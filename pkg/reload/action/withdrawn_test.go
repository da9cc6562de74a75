package action

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// withdrawn is an API server that does not serve the version of argoproj.io/Rollout any more: no patch of one finds its path.
type withdrawn struct{ stored }

func (c *withdrawn) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	c.writes++
	rollouts := schema.GroupResource{Group: "argoproj.io", Resource: "rollouts"}
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", rollouts, "web", "404 page not found", 0, true)
}

// The watch shows no deletion of such a workload, so that each attempt fails like the one before.
func TestEveryWriteOfAKindThatIsNotServedIsRepeatedRarely(t *testing.T) {
	t.Parallel()
	reload := func(ctx context.Context, a *Actions, s gather.Subject, in policy.Input) Outcome {
		return a.Reload(ctx, s, in, policy.Assess(in).Verdict)
	}
	for name, tc := range map[string]struct {
		prepare func(a *Actions, s *gather.Subject)
		attempt func(ctx context.Context, a *Actions, s gather.Subject, in policy.Input) Outcome
		reason  string
	}{
		"poke":    {func(_ *Actions, s *gather.Subject) { s.View.Intent.Restart = false }, reload, reasonReloadFailed},
		"restart": {func(*Actions, *gather.Subject) {}, reload, reasonReloadFailed},
		"notify":  {func(a *Actions, _ *gather.Subject) { a.gather.NotifyOnly = true }, reload, reasonReloadFailed},
		"direct": {func(_ *Actions, s *gather.Subject) { s.View.Intent.Restart = false }, func(
			ctx context.Context, a *Actions, s gather.Subject, in policy.Input,
		) Outcome {
			return a.stamps.write(ctx, s, policy.Assess(in).Verdict)
		}, reasonReloadFailed},
		"adopt": {func(_ *Actions, s *gather.Subject) { s.View.Managed = stamp.Managed{} }, func(
			ctx context.Context, a *Actions, s gather.Subject, in policy.Input,
		) Outcome {
			return a.Adopt(ctx, s, in, policy.Assess(in))
		}, reasonAdoptionFailed},
		"purge": {func(_ *Actions, s *gather.Subject) { s.View.Managed[stamp.Dummy] = "4417e0@4" }, func(
			ctx context.Context, a *Actions, s gather.Subject, _ policy.Input,
		) Outcome {
			return a.LeaveAlone(ctx, s)
		}, "PurgeFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &reloadtest.Outbox{}
			c := &withdrawn{stored{uid: "u1", hash: "abc"}}
			actions, s, _ := dueRollout(t, c, out, "abc")
			c.annotations = map[string]string{
				annotation.DefaultPrefix + "configmaps": "app", annotation.DefaultPrefix + "config-record": s.View.Managed[stamp.Record],
			}
			actions.stamps.gather.APIReader = c
			tc.prepare(actions, &s)
			in := actions.gather.Input(s)
			require.NoError(t, actions.gather.Read(t.Context(), s, in, policy.Assess(in).Reads))
			var wait time.Duration
			for attempt := range 12 {
				actions.state.Deferrals.Forget(s.Key)
				wait = tc.attempt(t.Context(), actions, s, in).close(t.Context(), actions.base).RequeueAfter
				require.Equal(t, attempt+1, c.writes)
				if assert.Len(t, out.Messages, 1, "attempt %d: reported at once, and only once", attempt) {
					assert.Equal(t, corev1.EventTypeWarning, out.Messages[0].Event.Type)
					assert.Equal(t, tc.reason, out.Messages[0].Event.Reason)
				}
			}
			assert.Greater(t, wait, 3*time.Second)
		})
	}
}
