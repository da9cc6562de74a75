package promise_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// webhookTimeout is that of the manifests: the most that we can delay a write.
const webhookTimeout = 3 * time.Second

// writeLimit is how long a write may take at most: the API server calls webhooks again for each time that it loses the
// race against another writer (the Deployment controller's status), and a loaded machine takes its time as well.
const writeLimit = 5 * webhookTimeout

// outage is an installation whose parts can be stopped and slowed down.
type outage struct {
	*fixture.Fixture
	in *installation.Installation
	// api is between the program and the API server.
	api *controlplane.Proxy
	// users is a client whose warnings are gathered.
	users    client.Client
	warnings *controlplane.Warnings
}

func newOutage(t *testing.T, cp *controlplane.ControlPlane) *outage {
	t.Helper()
	api, err := controlplane.NewProxy(cp.Address())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, api.Close()) })
	in := installation.NewInTurn(t, cp, installation.Options{
		LongLease: true, Args: []string{"--settle=100ms", "--refractory=0s", "--shutdown-grace-period=300ms"},
		Connect: func(config *rest.Config) { config.Host = "https://" + api.Addr() },
	})
	f := &outage{Fixture: fixture.New(t, in), in: in, api: api}
	user, heard := f.Warned()
	f.users, f.warnings = user.Client, heard
	return f
}

// setImage writes a template as a user; the error is the user's.
func (f *outage) setImage(ctx context.Context, of observe.Workload, image string) (time.Duration, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fixture.GroupVersionKind(of.Kind))
	object.SetNamespace(of.Namespace)
	object.SetName(of.Name)
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image)
	started := time.Now()
	err := f.users.Patch(ctx, object, client.RawPatch("application/json-patch+json", []byte(patch)))
	return time.Since(started), err
}

// With the webhook away, slow, or cut off from the API server, writes pass and are delayed by no more than its timeout, and
// the loop reloads what was missed meanwhile.
func TestP5WritesPassDuringOutages(t *testing.T) {
	t.Parallel()
	f := newOutage(t, controlplane.New(t, controlplane.Podless()))
	f.ConfigMap("app", fixture.Data{"key": "1"})
	var workloads []observe.Workload
	for n := range repetitions {
		workloads = append(workloads, f.Deployment(fmt.Sprintf("web%d", n), fixture.Uses{ConfigMaps: []string{"app"}}))
	}
	expected := 0
	release := func(failure string) {
		t.Helper()
		assert.NoError(t, fixture.Steadily(t, f.in, func() error {
			expected++
			slowest := f.releaseAll(t, workloads, fmt.Sprintf("example.com/app:during-%d", expected), failure)
			if slowest >= writeLimit {
				return fmt.Errorf("it took %s, and at most %s is allowed", slowest, writeLimit)
			}
			return nil
		}), "%s, and a user's write took too long", failure)
	}
	recovered := func(failure string) {
		t.Helper()
		f.Settled()
		for _, w := range workloads {
			f.RequireChanges(w, expected, failure+" costs no restart of its own")
		}
		f.SetConfigMap("app", "key", fmt.Sprintf("after %d", expected))
		expected++
		for _, w := range workloads {
			f.AwaitChanges(w, expected, "after "+failure+", a change restarts as ever")
		}
	}

	require.NoError(t, f.in.StopAll(f.Patiently()))
	release("the webhook is away")
	f.AssertAPIServerCounts(`apiserver_admission_webhook_fail_open_count\{name="mutate\.pod-reloader\.cs\.sap\.com",.*\}`)
	require.NoError(t, f.in.StartAll(f.Patiently()))
	recovered("a webhook that was away")

	f.in.Balancer().SetDelay(webhookTimeout + time.Second)
	release("the webhook does not answer")
	f.in.Balancer().SetDelay(0)
	recovered("a webhook that did not answer")

	f.waitForTheAnswer(t)
	f.api.SetDelay(1200 * time.Millisecond)
	f.warnings.Take()
	release("the API server does not answer the webhook in time")
	texts := f.warnings.Take()
	assert.NotEmpty(t, texts, "users are warned that their write has an old stamp")
	for _, text := range texts {
		assert.Contains(t, text, "pod-reloader", "who warns")
	}
	f.api.SetDelay(0)
	recovered("a webhook that could not read")
}

// waitForTheAnswer has the API server wait for the webhook for as long as it can. The webhook gives up reading after two seconds; on a slow
// machine, its answer would come after the three of the manifests.
func (f *outage) waitForTheAnswer(t *testing.T) {
	t.Helper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: f.in.WebhookConfiguration()}}
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":30}]`))
	require.NoError(t, f.Patch(t.Context(), configuration, patch))
}

// releaseAll sets an image for each workload at once, and returns how long the slowest write took.
func (f *outage) releaseAll(t *testing.T, workloads []observe.Workload, image, failure string) (slowest time.Duration) {
	t.Helper()
	all := make([]time.Duration, len(workloads))
	started := time.Now()
	var writing sync.WaitGroup
	for n, w := range workloads {
		writing.Go(func() {
			var err error
			all[n], err = f.setImage(t.Context(), w, image)
			assert.NoError(t, err, "%s, and a user's write failed", failure)
		})
	}
	writing.Wait()
	t.Logf("%s: %d writes took %s", failure, len(workloads), time.Since(started))
	return slices.Max(all)
}

// leftOut is why an attempt at a write that is to be rejected shows nothing.
const leftOut = "the API server may have gone on without the webhook"

// wrongProof is a proof that matches nothing, another one for each n.
func wrongProof(n int) string { return fmt.Sprintf(`"%s":"%064d"`, fixture.ConfigHash, n) }

// The one thing that is rejected, and what looks like it.
func onlyAWrongProofIsRejected(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	f := newOutage(t, cp)
	f.ConfigMap("app", fixture.Data{"key": "1"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	w := f.Deployment("web", uses)
	never := f.Deployment("never", fixture.Uses{})
	annotate := func(of observe.Workload, annotations string) error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(fixture.GroupVersionKind(of.Kind))
		object.SetNamespace(of.Namespace)
		object.SetName(of.Name)
		return f.users.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{`+annotations+`}}}`)))
	}

	var err error
	poll.Repeat(t, attempts, leftOut, func(n int) bool {
		began := time.Now()
		err = annotate(w, wrongProof(n))
		return apierrors.IsConflict(err) || time.Since(began) < fixture.Prompt
	})
	require.Error(t, err, "a new proof that does not match is rejected")
	assert.True(t, apierrors.IsConflict(err), "as a conflict, so that clients look again: %v", err)
	assert.Contains(t, err.Error(), "configmap/app", "it names what was compared")

	require.True(t, poll.Repeat(t, attempts, leftOut, func(n int) bool {
		return within(fixture.Prompt, func() {
			assert.NoError(t, annotate(never, wrongProof(n)), "on a workload that never opted in it is purged")
		})
	}))
	assert.NotContains(t, f.Get(never).GetAnnotations(), fixture.ConfigHash)
	copied := f.Manifest("Deployment", "copied", uses)
	annotations := copied.GetAnnotations()
	annotations[fixture.ConfigHash] = "0000"
	copied.SetAnnotations(annotations)
	f.CreatePromptly(copied)
	assert.NotContains(t, f.Get(observe.Deployment(f.Namespace, "copied")).GetAnnotations(), fixture.ConfigHash, "one that was copied from elsewhere is purged")
	for _, garbage := range []string{
		`"` + fixture.ConfigRecord + `":"garbage"`, `"` + fixture.LastReload + `":"{"`,
		`"` + fixture.ConfigMaps + `":"app,,App!,../etc"`, `"` + fixture.Secrets + `":" , "`,
	} {
		assert.NoError(t, annotate(w, garbage), "garbage in an annotation is answered by a warning at most: %s", garbage)
	}

	f.waitForTheAnswer(t)
	var code int
	var retry string
	require.True(t, poll.Repeat(t, attempts, leftOut, func(n int) bool {
		f.api.SetDelay(1200 * time.Millisecond)
		defer f.api.SetDelay(0)
		began := time.Now()
		code, retry = annotateOnce(f, w, wrongProof(attempts+n))
		return code == http.StatusServiceUnavailable || time.Since(began) < webhookTimeout
	}))
	assert.Equal(t, http.StatusServiceUnavailable, code, "what cannot be verified is rejected")
	assert.NotEmpty(t, retry, "and the client gets a time to try again")
}

// annotateOnce writes annotations past the retries of client-go, and returns the status and when to try again.
func annotateOnce(f *outage, of observe.Workload, annotations string) (code int, retryAfter string) {
	f.Helper()
	admin := f.in.ControlPlane().Admin()
	api, err := rest.HTTPClientFor(admin)
	require.NoError(f, err)
	url := fmt.Sprintf("%s/apis/apps/v1/namespaces/%s/deployments/%s", admin.Host, of.Namespace, of.Name)
	body := strings.NewReader(`{"metadata":{"annotations":{` + annotations + `}}}`)
	request, err := http.NewRequestWithContext(f.Context(), http.MethodPatch, url, body)
	require.NoError(f, err)
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := api.Do(request)
	require.NoError(f, err)
	require.NoError(f, response.Body.Close())
	return response.StatusCode, response.Header.Get("Retry-After")
}
