package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// A permission that is missing for the Record of a suspended Job is no refused re-creation. Credentials that are not accepted pass by
// themselves.
func TestSuspendedJobThatCannotBeRecordedIsNotReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		note string
	}{
		"no permission":                  {err: forbidden("Job")},
		"credentials are not accepted":   {apierrors.NewUnauthorized("expired"), "AdoptionFailed: "},
		"refused by an admission policy": {apierrors.NewInvalid(reloadtest.JobKind.GroupKind(), "import", nil), "AdoptionFailed: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJobFixture(t, map[string]any{"suspend": true}, nil)
			actions := j.leader()
			actions.gather.Records = &actions.state.Records
			j.API.Before = failing("patch Job", tc.err)
			again := j.reconcile(t, actions)
			assert.Equal(t, tc.note != "", again.RequeueAfter > 0)
			if tc.note != "" {
				for range untilReported {
					j.Now = j.Now.Add(again.RequeueAfter)
					again = j.reconcile(t, actions)
				}
				require.Len(t, j.Notes(), 1)
				assert.Contains(t, j.Notes()[0], tc.note)
				return
			}
			j.API.Calls = nil
			assert.Zero(t, j.reconcile(t, actions))
			assert.Empty(t, j.API.Calls, "it is not tried again")
			assert.Empty(t, j.Notes())
		})
	}
}

// The guard lets no Job be deleted whose configuration is not recorded: the Record that is kept in memory is written first.
func TestJobIsRecordedBeforeItIsDeleted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		client  client.Client
		reason  string
		message string
		// attempts are those that have failed before. quiet means that there is no Event.
		attempts int
		quiet    bool
	}{
		"the configuration is recorded": {client: &accepting{}},
		"a webhook drops the Record":    {&accepting{drops: true}, reasonRecreationFailed, "the config-record is not stored", 0, true},
		"the webhook keeps another one": {&accepting{keeps: "v1:abc::"}, reasonRecreationFailed, "the webhook did not accept the config-record", 0, true},
		"a webhook drops it each time":  {&accepting{drops: true}, reasonRecreationFailed, recordRemoved(jobUnrecorded), state.Persistent, false},
		"there is no answer":            {&patched{err: errors.New("no answer")}, reasonRecreationFailed, "no answer", 0, true},
		"the permission is missing":     {client: &patched{err: forbidden("Job")}, reason: "RecreationForbidden", message: "is forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actions := newActions(Options{Client: tc.client, Gather: gather.Gatherer{Reader: reloadtest.Reader()}}, &reloadtest.Outbox{})
			s := reloadtest.Web(t)
			s.View.Managed[stamp.Record] = "v1:-::"
			for range tc.attempts {
				actions.backoff.When(s.Key, state.Soon)
			}
			outcome := actions.adoptions.storeKept(t.Context(), s)
			if tc.reason == "" {
				assert.Equal(t, Waiting(queue.After(time.Second, queue.Retry)), outcome)
				return
			}
			require.IsType(t, failed{}, outcome)
			assert.Equal(t, tc.reason, outcome.(failed).failure.reason)
			assert.Equal(t, tc.quiet, outcome.(failed).failure.quiet)
			_, accepted := tc.client.(*accepting)
			assert.Equal(t, accepted, outcome.(failed).failure.stored, "the event of the write is no reason to try again")
			assert.ErrorContains(t, outcome.(failed).failure.err, tc.message)
		})
	}
}

// Another admission webhook may drop annotations that it does not know: then a change of the Job stays due.
func TestSuspendedJobWhoseRecordIsDroppedIsTriedAgain(t *testing.T) {
	t.Parallel()
	j := newJobFixture(t, map[string]any{"suspend": true}, nil)
	actions, api := j.leader(), &accepting{drops: true}
	actions.client = api
	for range state.Persistent + 1 {
		require.Positive(t, j.reconcile(t, actions).RequeueAfter)
	}
	assert.Equal(t, state.Persistent+1, api.writes)
	assert.Equal(t, []string{"AdoptionFailed: " + recordRemoved(jobUnrecorded)}, j.Notes(), "after some attempts")
	assert.Positive(t, actions.state.Deferrals.Wait(reloadtest.JobKey, time.Time{}, j.Now), "the event of the write is no reason to try again")
}

// Each reload begins the pauses anew. What removes each Record is not tried as often again after it, and is reported once.
func TestRemovedRecordIsTriedLessOftenAlsoAfterAReload(t *testing.T) {
	t.Parallel()
	ring, now := digesttest.Ring(t, "a"), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	api, out := &accepting{drops: true}, &reloadtest.Outbox{}
	actions := newActions(Options{Client: api, Gather: absentApp(t, nil, ring, now)}, out)
	s := reloadtest.Web(t)
	s.View.WorkloadBudget = 1000
	in := actions.gather.Input(s)
	require.NoError(t, actions.gather.Read(t.Context(), s, in, in.Refs))
	adopt := func() time.Duration {
		return actions.Adopt(t.Context(), s, in, policy.Assess(in)).close(t.Context(), actions.base).RequeueAfter
	}
	for range state.Persistent + 1 {
		adopt()
	}
	require.Len(t, out.Notes(), 1)
	InOrder{s}.close(t.Context(), actions.base)
	assert.Equal(t, time.Second, adopt())
	assert.Equal(t, 2*time.Second, adopt())
	assert.Len(t, out.Notes(), 1)

	api.drops = false
	adopt()
	api.drops = true
	assert.Less(t, adopt(), time.Second, "the first one after it was stored may pass by itself")
}
