package action

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestFailedWritesAreSortedByWhoMustAct(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cause := errors.New("cause")
	status := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: "text"}}
	}
	tests := map[string]struct {
		err         error
		soon, quiet bool
	}{
		"the API server is away":              {cause, true, true},
		"the API server restarts":             {status(http.StatusServiceUnavailable), true, false},
		"the API server is busy":              {apierrors.NewTooManyRequests("slow down", 1), true, false},
		"a webhook with Fail does not answer": {status(http.StatusInternalServerError), true, false},
		"another writer was faster":           {apierrors.NewConflict(resource, "web", cause), true, true},
		"the workload is gone":                {apierrors.NewNotFound(resource, "web"), true, true},
		"no permission to write":              {apierrors.NewForbidden(resource, "web", cause), false, false},
		"a policy denies it":                  {status(http.StatusUnprocessableEntity), false, false},
		"a webhook denies it by 409":          {deniedBy(apierrors.NewConflict(resource, "lock", cause).Status()), false, false},
		"a webhook denies it by 404":          {deniedBy(apierrors.NewNotFound(resource, "other").Status()), false, false},
		"a webhook denies it by 404 alone":    {deniedBy(metav1.Status{Code: http.StatusNotFound, Message: "not in the cache"}), false, false},
		"wrapped":                             {fmt.Errorf("poke: %w", apierrors.NewForbidden(resource, "web", cause)), false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failedWrite(workload.Deployment(), "ReloadFailed", tc.err)
			assert.Equal(t, tc.soon, got.soon, "passes by itself")
			assert.Equal(t, tc.quiet, got.quiet, "is no news for the user")
			assert.ErrorIs(t, got.err, tc.err)
		})
	}
}

// What is in front of the API server answers such a 404 for a moment, too: it always has the built-in kinds.
func TestWriteOfAKindThatIsNotServedIsRepeatedRarely(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "example.com", Resource: "gadgets"}
	path := apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", resource, "web", "404 page not found", 0, true)
	for name, tc := range map[string]struct {
		group string
		err   error
		soon  bool
	}{
		"a custom kind":              {"example.com", path, false},
		"the resource is not found":  {"example.com", fmt.Errorf("patch: %w", &meta.NoKindMatchError{}), false},
		"a built-in kind":            {"apps", path, true},
		"an object of a custom one":  {"example.com", apierrors.NewNotFound(resource, "web"), true},
		"an API server that is away": {"example.com", errors.New("away"), true},
	} {
		kind := workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: tc.group, Version: "v1", Kind: "Gadget"}}
		f := failedWrite(kind, "ReloadFailed", tc.err)
		assert.Equal(t, tc.soon, f.soon, name)
		assert.Equal(t, tc.soon, f.quiet, "%s: what does not pass is reported", name)
	}
}

func TestFailedPinIsALostRace(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	tests := map[string]struct {
		err  error
		lost bool
	}{
		"a test of the patch failed": {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false), true},
		"the object is invalid":      {apierrors.NewInvalid(kind, "web", nil), false},
		"a webhook denies it":        {deniedBy(metav1.Status{Code: http.StatusUnprocessableEntity, Message: "no owner"}), false},
		"a kind is named":            {apierrors.NewInvalid(kind, "", nil), false},
		"no permission to write":     {apierrors.NewForbidden(resource, "web", errors.New("cause")), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failedPin(workload.Deployment(), "ReloadFailed", tc.err)
			assert.Equal(t, tc.lost, got.soon)
			assert.Equal(t, tc.lost, got.quiet)
			assert.Equal(t, tc.lost, got.pace() == state.Overtaken)
		})
	}
}

func TestConflictEventKeepsItsText(t *testing.T) {
	t.Parallel()
	one := failure{conflict: true, err: errors.New("the digest is aaaa now")}
	two := failure{conflict: true, err: errors.New("the digest is bbbb now")}
	assert.Equal(t, one.text(), two.text(), "another text is another Event")
	assert.Equal(t, "denied", failure{err: errors.New("denied")}.text())
}

// The Event names what the request was about, such as the Secret with a manifest. The text after that names an address.
func TestEventAboutAMissingAnswerNamesTheRequest(t *testing.T) {
	t.Parallel()
	hangs := func(address string) failure {
		return failure{err: fmt.Errorf("create the deleted job again from secret shop/x: %w", fmt.Errorf("%w: Post %q", errNoAnswer, address))}
	}
	assert.Equal(t, "create the deleted job again from secret shop/x: "+errNoAnswer.Error(), hangs("https://10.0.0.1").text())
	assert.Equal(t, hangs("https://10.0.0.1").text(), hangs("https://10.0.0.2").text())
	assert.Equal(t, errNoAnswer.Error(), failure{err: errNoAnswer}.text())
}

func TestMissingPermissionsAreRetriedSooner(t *testing.T) {
	t.Parallel()
	deployment, deployments := workload.Deployment(), schema.GroupResource{Group: "apps", Resource: "deployments"}
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "x" denied the request`,
	}}
	rbac := apierrors.NewForbidden(deployments, "web", errors.New(`User "system:serviceaccount:a:b" cannot patch resource "deployments"`))
	expired := apierrors.NewUnauthorized("token expired")
	for name, c := range map[string]struct {
		failure failure
		want    bool
	}{
		"a write without a permission": {failedWrite(deployment, "ReloadFailed", rbac), true},
		"a write without credentials":  {failedWrite(deployment, "ReloadFailed", expired), true},
		"a webhook of others":          {failedWrite(deployment, "ReloadFailed", denied), false},
		"a policy":                     {failedWrite(deployment, "ReloadFailed", apierrors.NewForbidden(deployments, "web", errors.New("ValidatingAdmissionPolicy"))), false},
		"a read without a permission":  {unreadable(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "db", errors.New("no"))), true},
		"a read without credentials":   {unreadable(expired), true},
		"a read that the server fails": {unreadable(errors.New("away")), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, c.failure.refused)
		})
	}

	actions := newActions(Options{}, &reloadtest.Outbox{})
	key := workload.Key{Namespace: "shop", Name: "web"}
	var last time.Duration
	for range 20 {
		last = failed{gather.Subject{Key: key}, unreadable(rbac)}.close(t.Context(), actions.base).RequeueAfter
	}
	assert.Equal(t, 30*time.Second, last)
	actions.backoff.Forget(key)
	assert.Equal(t, time.Second, failed{gather.Subject{Key: key}, unreadable(rbac)}.close(t.Context(), actions.base).RequeueAfter)
	for range 20 {
		last = failed{gather.Subject{Key: key}, failedWrite(deployment, "ReloadFailed", denied)}.close(t.Context(), actions.base).RequeueAfter
	}
	assert.Equal(t, 5*time.Minute, last)
}

// untilReported is how many attempts are refused until an Event says so, if each is made at the end of the wait after the one before.
const untilReported = 4

// An API server that has just started refuses everything, until it has read the roles. It is away before, for long enough that an error which
// passes by itself is reported.
func TestRefusalIsReportedOnceItLasts(t *testing.T) {
	t.Parallel()
	jobs := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "import", errors.New(`User "a" cannot get resource "jobs"`))
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "x" denied the request`,
	}}
	for name, tc := range map[string]struct {
		failure failure
		after   int
	}{
		"a read of configuration":             {unreadable(jobs), untilReported},
		"a write of a workload":               {failedWrite(workload.Deployment(), reasonReloadFailed, jobs), untilReported},
		"the credentials":                     {failedWrite(workload.Deployment(), reasonReloadFailed, apierrors.NewUnauthorized("expired")), untilReported},
		"a Job that is to be created again":   {failedRecreation(jobs), untilReported},
		"a write that another webhook denies": {failedWrite(workload.Deployment(), reasonReloadFailed, denied), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, s, now := &reloadtest.Outbox{}, reloadtest.Web(t), time.Now()
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}}, out)
			for range state.Persistent + 1 {
				failed{s, transientFailure(reasonReloadFailed, "away")}.close(t.Context(), actions.base)
			}
			out.Messages = nil
			actions.state.Changes.EventArrived(s.Key, now)
			for n := 1; n <= tc.after+1; n++ {
				assert.Equal(t, n > tc.after, len(out.Messages) > 0, "%d", n)
				assert.Equal(t, n <= tc.after, actions.state.Changes.HasPending(s.Key), "until then, it may pass by itself")
				s.Events = actions.state.Changes.BeginAttempt(s.Key)
				if n <= tc.after {
					now = now.Add(failed{s, tc.failure}.close(t.Context(), actions.base).RequeueAfter)
				}
			}
		})
	}
}

// A workload that is written often is tried at each write, and refused each time. What was refused before the API server was away, or before
// an attempt succeeded, says nothing about the one that starts.
func TestRefusalLastsFromTheFirstOneInARow(t *testing.T) {
	t.Parallel()
	forbidden := failedWrite(workload.Deployment(), reasonReloadFailed, forbidden("Deployment"))
	for name, between := range map[string]func(*Actions, gather.Subject){
		"it is away": func(a *Actions, s gather.Subject) {
			failed{s, transientFailure(reasonReloadFailed, "away")}.close(t.Context(), a.base)
		},
		"an attempt succeeds": func(a *Actions, s gather.Subject) { InOrder{s}.close(t.Context(), a.base) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, s, now := &reloadtest.Outbox{}, reloadtest.Web(t), time.Now()
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}}, out)
			for range 2 {
				for range 3 * untilReported {
					failed{s, forbidden}.close(t.Context(), actions.base)
				}
				now = now.Add(7*time.Second - 1)
				failed{s, forbidden}.close(t.Context(), actions.base)
				assert.Empty(t, out.Messages)
				between(actions, s)
				now = now.Add(time.Hour)
			}
			failed{s, forbidden}.close(t.Context(), actions.base)
			now = now.Add(7 * time.Second)
			failed{s, forbidden}.close(t.Context(), actions.base)
			assert.Len(t, out.Messages, 1)
		})
	}
}

// An admission webhook of others may answer with a text of any length: it is logged at each attempt, and kept with the Event.
func TestTextOfAFailureIsBounded(t *testing.T) {
	t.Parallel()
	deployment := workload.Deployment()
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "x" denied the request: ` + strings.Repeat("é", 100_000),
	}}
	out, logged := &reloadtest.Outbox{}, 0
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { logged += len(args) }, funcr.Options{}))
	actions := newActions(Options{}, out)
	s := reloadtest.Web(t)
	failed{s, failedWrite(deployment, "ReloadFailed", denied)}.close(ctx, actions.base)
	assert.Positive(t, logged)
	assert.Less(t, logged, 5000)
	require.Len(t, out.Messages, 1)
	assert.True(t, out.Messages[0].Valid(), "no other failure has followed: the Event may be sent")
	text := failedWrite(deployment, "ReloadFailed", denied).text()
	assert.True(t, actions.state.Warnings.IsWarned(s.Key, "ReloadFailed", state.DigestOf(text)), "the bounded text is remembered")
	assert.Less(t, len(text), 2100)
}

// An event that came while the attempt was made was unknown to it: it ends the wait like a later one.
func TestEventDuringAnAttemptEndsTheWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}}, &reloadtest.Outbox{})
	s := reloadtest.Web(t)
	s.Events.Last = now.Add(-2 * time.Second)
	denied := failedWrite(workload.Deployment(), "AdoptionFailed", apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New("denied")))
	denied.stored = true
	for range 5 { // the pause grows to 16 s
		failed{s, denied}.close(t.Context(), actions.base)
	}
	wait := func(lastEvent time.Time) time.Duration { return actions.state.Deferrals.Wait(s.Key, lastEvent, now) }
	assert.Equal(t, 16*time.Second, wait(s.Events.Last))
	assert.Equal(t, 3*time.Second, wait(s.Events.Last.Add(time.Second)), "but not at once: there may be more of them")
	now = now.Add(3 * time.Second)
	assert.Zero(t, wait(s.Events.Last.Add(time.Second)))
}
