package action

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
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
			assert.Zero(t, actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions.base))
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
	result := actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
	assert.Positive(t, result.RequeueAfter)
	assert.Empty(t, alerts.Offered)
	assert.Empty(t, out.Notes())
}

// A Change that is recorded is not found again: it stays due until a notification about it can wait in the queue.
func TestChangeStaysDueWhileTheQueueIsFull(t *testing.T) {
	t.Parallel()
	api := &argoAPI{}
	actions, s, in, out, alerts := notifying(t, api, "abc")
	alerts.Full = true
	verdict := policy.Assess(in).Verdict
	assert.Positive(t, actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions.base).RequeueAfter)
	assert.Empty(t, api.patches)
	assert.Empty(t, alerts.Offered)
	assert.Empty(t, out.Notes(), "the user of the workload can do nothing about it")
	alerts.Full = false
	assert.Zero(t, actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions.base))
	assert.Len(t, alerts.Offered, 1)
}

// behind is a Store whose watch does not show yet what is stored.
type behind struct {
	reloadtest.Store
	live map[reference.Ref]digest.State
}

func (b *behind) ReadLive(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	return b.live, b.Err
}

// The watch of a new leader may be behind: the Record that an earlier one has written is newer than what the cache shows.
func TestNotificationIsMadeFromTheLiveConfiguration(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	another := digest.StateOf(digest.OfConfigMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Data: map[string]string{"a": "b"},
	}), "uid", "2", ring)
	for name, tc := range map[string]struct {
		live   digest.State
		err    error
		posted []string
	}{
		"what is recorded is stored":          {live: digest.State{Absent: true}},
		"the configuration cannot be read":    {live: another, err: errors.New("away")},
		"the configuration has changed again": {live: another, posted: []string{"posted to --webhook-url, not reloaded: configmap/app created"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &argoAPI{}
			actions, s, in, out, alerts := notifying(t, api, "abc")
			verdict := policy.Assess(in).Verdict
			require.Equal(t, policy.Reload, verdict.Action, "by the cache")
			actions.gather.Store = &behind{reloadtest.Store{Err: tc.err}, map[reference.Ref]digest.State{app: tc.live}}
			result := actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions.base)
			assert.Len(t, alerts.Offered, len(tc.posted))
			if tc.posted == nil {
				assert.Positive(t, result.RequeueAfter)
				assert.Empty(t, api.patches)
				return
			}
			assert.Equal(t, tc.posted, out.Notes())
			in.Known = policy.KnownOf("abc", api.patches[0].Metadata.Annotations[actions.annotations.ConfigRecord])
			in.Current[app] = tc.live
			assert.Equal(t, policy.Nothing, policy.Assess(in).Verdict.Action, "what is stored is recorded")
		})
	}
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
		actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
		assert.Len(t, alerts.Offered, 1, kind.Kind)
		require.Len(t, api.patches, 1, kind.Kind)
		assert.Empty(t, api.patches[0].Spec, kind.Kind)
	}
}

// lossy stores a patch and answers with an error.
type lossy struct {
	argoAPI
	lost error
}

func (l *lossy) Patch(ctx context.Context, answer client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := l.argoAPI.Patch(ctx, answer, patch, opts...); err != nil {
		return err
	}
	return l.lost
}

// The answer to the write is lost: what the watch shows next decides whether the Change was recorded.
func TestNotificationWhoseWriteHasNoAnswer(t *testing.T) {
	t.Parallel()
	away := errors.New("connection reset by peer")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "rollouts"}, "web", errors.New("modified"))
	for name, tc := range map[string]struct {
		lost error
		// stored says that the Record is there at the next look, version is that of the workload.
		stored  bool
		version string
		want    int
	}{
		"the write was stored":                        {away, true, "8", 1},
		"the write was stored, and the server failed": {apierrors.NewInternalError(away), true, "8", 1},
		"the write was not stored":                    {away, false, "8", 0},
		"another leader has stored it":                {conflict, true, "8", 0},
		"the watch shows what was there before":       {away, false, "7", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &lossy{lost: tc.lost}
			actions, s, in, out, alerts := notifying(t, &api.argoAPI, "abc")
			actions.client = api
			verdict := policy.Assess(in).Verdict
			assert.Positive(t, actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions.base).RequeueAfter)
			require.Empty(t, alerts.Offered, "it is not known whether it was stored")
			next := seenAgain(s, tc.version)
			if tc.stored {
				next.View.Managed[stamp.Record] = api.patches[0].Metadata.Annotations[actions.annotations.ConfigRecord]
			}
			for range 2 {
				assert.Zero(t, actions.UpToDate(t.Context(), next).close(t.Context(), actions.base))
			}
			assert.Len(t, alerts.Offered, tc.want)
			notes := slices.DeleteFunc(out.Notes(), func(note string) bool { return note == "Internal error occurred: connection reset by peer" })
			assert.Len(t, notes, tc.want)
			for _, note := range notes {
				assert.Equal(t, "posted to --webhook-url, not reloaded: configmap/app created", note)
			}
		})
	}
}

// The permission to patch Jobs is one that the user has not granted; credentials that have expired are no missing permission.
func TestMissingPermissionToPatchJobsIsExplained(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "web", errors.New("no"))
	refused.ErrStatus.Message = `jobs.batch "web" is forbidden: User "x" cannot patch resource "jobs"`
	for name, tc := range map[string]struct {
		kind workload.Kind
		err  error
		want bool
	}{
		"a Job without the permission": {workload.Job(), refused, true},
		"another kind":                 {workload.Deployment(), refused, false},
		"a Job, without credentials":   {workload.Job(), apierrors.NewUnauthorized("expired"), false},
		"a Job, the server is away":    {workload.Job(), errors.New("away"), false},
		"a Job that a policy refuses":  {workload.Job(), freeze(), false},
	} {
		f := failedNotice(gather.Subject{Object: workload.Summary{Kind: tc.kind}}, tc.err)
		require.ErrorIs(t, f.err, tc.err, name)
		assert.Equal(t, tc.want, strings.Contains(f.text(), "may not patch the Job"), name)
	}
}

// stopping ends the leader while a patch is under way.
type stopping struct {
	argoAPI
	stop context.CancelFunc
}

func (c *stopping) Patch(ctx context.Context, answer client.Object, patch client.Patch, opts ...client.PatchOption) error {
	c.stop()
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.argoAPI.Patch(ctx, answer, patch, opts...)
}

// No other leader would find the Change again, whose Record is stored.
func TestNotificationIsOfferedWhereTheLeaderStops(t *testing.T) {
	t.Parallel()
	api := &stopping{}
	actions, s, in, out, alerts := notifying(t, &api.argoAPI, "abc")
	actions.client = api
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	api.stop = stop
	actions.Reload(ctx, s, in, policy.Assess(in).Verdict).close(ctx, actions.base)
	require.Error(t, ctx.Err())
	assert.Len(t, alerts.Offered, 1)
	assert.Equal(t, []string{"posted to --webhook-url, not reloaded: configmap/app created"}, out.Notes())
}

// seenAgain is a workload at another version.
func seenAgain(s gather.Subject, version string) gather.Subject {
	s.Object = reloadtest.Summary(s.Object.Kind, map[string]any{"metadata": map[string]any{"uid": "u1", "resourceVersion": version, "generation": int64(3)}})
	s.View.Managed = maps.Clone(s.View.Managed)
	return s
}

// The attempt is repeated, and its answer arrives: there is one notification, also where the watch shows the first attempt first.
func TestNotificationThatIsRepeatedIsOne(t *testing.T) {
	t.Parallel()
	api := &lossy{lost: errors.New("connection reset by peer")}
	actions, s, in, _, alerts := notifying(t, &api.argoAPI, "abc")
	actions.client = api
	verdict := policy.Assess(in).Verdict
	actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions.base)
	api.lost = nil
	assert.Zero(t, actions.Reload(t.Context(), s, in, verdict).close(t.Context(), actions.base))
	require.Len(t, alerts.Offered, 1)
	next := seenAgain(s, "8")
	next.View.Managed[stamp.Record] = api.patches[1].Metadata.Annotations[actions.annotations.ConfigRecord]
	actions.UpToDate(t.Context(), next).close(t.Context(), actions.base)
	assert.Len(t, alerts.Offered, 1)
}

// storedWithoutAnswer is a workload as the watch shows it after a notification whose write lost its answer; further writes have one.
func storedWithoutAnswer(t *testing.T) (*Actions, gather.Subject, policy.Input, *reloadtest.Alerts) {
	t.Helper()
	api := &lossy{lost: errors.New("connection reset by peer")}
	actions, s, in, _, alerts := notifying(t, &api.argoAPI, "abc")
	actions.client = api
	actions.Reload(t.Context(), s, in, policy.Assess(in).Verdict).close(t.Context(), actions.base)
	require.Empty(t, alerts.Offered)
	api.lost = nil
	next := seenAgain(s, "8")
	next.View.Managed[stamp.Record] = api.patches[0].Metadata.Annotations[actions.annotations.ConfigRecord]
	return actions, next, in, alerts
}

// Before the next look, the configuration has changed again.
func TestNotificationWhoseWriteHasNoAnswerPrecedesTheNextOne(t *testing.T) {
	t.Parallel()
	actions, next, in, alerts := storedWithoutAnswer(t)
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	another := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Data: map[string]string{"a": "b"}}
	actions.gather.Store.(*reloadtest.Store).States[app] = digest.StateOf(digest.OfConfigMap(another), "uid", "2", in.Ring)
	in = actions.gather.Input(next)
	require.NoError(t, actions.gather.Read(t.Context(), next, in, policy.Assess(in).Reads))
	verdict := policy.Assess(in).Verdict
	require.Equal(t, policy.Reload, verdict.Action)
	assert.Zero(t, actions.Reload(t.Context(), next, in, verdict).close(t.Context(), actions.base))
	require.Len(t, alerts.Offered, 2)
	assert.Equal(t, record.Created, alerts.Offered[0].Changes[0].Type)
	assert.Equal(t, record.Modified, alerts.Offered[1].Changes[0].Type)
}

// Before the next look, the workload depends on one more object, which is adopted.
func TestNotificationWhoseWriteHasNoAnswerPrecedesAnAdoption(t *testing.T) {
	t.Parallel()
	actions, next, _, alerts := storedWithoutAnswer(t)
	in := actions.gather.Input(next)
	actions.Adopt(t.Context(), next, in, policy.Assess(in)).close(t.Context(), actions.base)
	assert.Len(t, alerts.Offered, 1)
}
