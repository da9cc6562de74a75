package promise_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// callLimit is how long the API server may wait for the webhook at most, on average: a loaded machine takes its time as well. It is about
// calls and not about writes: the API server calls again each time that a write loses the race against another writer, without a limit.
const callLimit = 2 * webhookTimeout

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
func (f *outage) setImage(ctx context.Context, of observe.Workload, image string) error {
	return f.users.Patch(ctx, fixture.Object(of), fixture.Image(of, image))
}

// What the API server counts of the calls of our webhook: those that failed and whose writes passed, all of them, and how long all took.
const (
	failOpen  = `apiserver_admission_webhook_fail_open_count` + ours
	called    = `apiserver_admission_webhook_admission_duration_seconds_count` + ours
	calledFor = `apiserver_admission_webhook_admission_duration_seconds_sum` + ours
	ours      = `\{name="mutate\.pod-reloader\.cs\.sap\.com",.*\}`
)

// With the webhook away, slow, or cut off from the API server, writes pass and are delayed by no more than its timeout, and
// the loop reloads what was missed and what changed meanwhile.
func TestP5WritesPassDuringOutages(t *testing.T) {
	t.Parallel()
	f := newOutage(t, controlplane.New(t, controlplane.Podless()))
	f.ConfigMap("app", fixture.Data{"key": "1"})
	r := &releasing{outage: f}
	for n := range repetitions {
		r.workloads = append(r.workloads, f.Deployment(fmt.Sprintf("web%d", n), fixture.Uses{ConfigMaps: []string{"app"}}))
	}

	require.NoError(t, f.in.StopAll(f.Patiently()))
	r.change("while the webhook is away")
	r.releasePastWebhook(t, "the webhook is away")
	require.NoError(t, f.in.StartAll(f.Patiently()))
	r.recovered("a webhook that was away")

	f.in.Balancer().SetDelay(webhookTimeout + time.Second)
	r.change("while the webhook does not answer")
	r.releasePastWebhook(t, "the webhook does not answer")
	f.in.Balancer().SetDelay(0)
	r.recovered("a webhook that did not answer")
	r.change("after the webhook did not answer") // the loop may have reloaded the change before without the webhook
	r.awaitChanges("a change restarts as ever")

	f.waitForTheAnswer(t)
	f.api.SetDelay(1200 * time.Millisecond)
	r.release(t, "the API server does not answer the webhook in time")
	texts := f.warnings.Take()
	assert.GreaterOrEqual(t, len(texts), len(r.workloads), "each user is warned that the write has an old stamp")
	for _, text := range texts {
		assert.Contains(t, text, "pod-reloader", "who warns")
	}
	r.change("while the webhook cannot read") // later than the releases, which could have its stamp otherwise
	f.api.SetDelay(0)
	r.recovered("a webhook that could not read")
}

// releasing are users who write workloads during outages.
type releasing struct {
	*outage
	workloads []observe.Workload
	// images counts the images that were set, expected the changes of each template.
	images, expected int
}

// change changes what the workloads depend on, which restarts each of them once.
func (r *releasing) change(when string) {
	r.Helper()
	r.SetConfigMap("app", "key", when)
	r.expected++
}

// release sets an image for each workload at once, until the API server does not wait too long for the webhook.
func (r *releasing) release(t *testing.T, failure string) {
	t.Helper()
	assert.NoError(t, fixture.Steadily(t, r.in, func() error {
		r.images++
		r.expected++
		r.warnings.Take()
		calls, waited := r.APIServerCount(called), r.APIServerCount(calledFor)
		r.releaseAll(t, r.workloads, fmt.Sprintf("example.com/app:during-%d", r.images), failure)
		calls, waited = r.APIServerCount(called)-calls, r.APIServerCount(calledFor)-waited
		if waited >= calls*callLimit.Seconds() {
			return fmt.Errorf("the API server waited %.1f s for %.0f calls of the webhook, and less than %s for each is allowed", waited, calls, callLimit)
		}
		return nil
	}), "%s, and writes of users waited too long for the webhook", failure)
}

// releasePastWebhook is release for an outage in which no call of the webhook has an answer: the API server counts each write.
func (r *releasing) releasePastWebhook(t *testing.T, failure string) {
	t.Helper()
	before, images := r.APIServerCount(failOpen), r.images
	r.release(t, failure)
	assert.GreaterOrEqual(t, r.APIServerCount(failOpen)-before, float64((r.images-images)*len(r.workloads)),
		"%s: each write passes without the webhook", failure)
}

// recovered shows that what changed meanwhile is reloaded, and that each template has changed as often as it had to.
func (r *releasing) recovered(failure string) {
	r.Helper()
	r.awaitChanges("after " + failure + ", what changed meanwhile is reloaded")
	r.Settled()
	for _, w := range r.workloads {
		r.RequireChanges(w, r.expected, failure+" costs no restart of its own")
	}
}

func (r *releasing) awaitChanges(why string) {
	r.Helper()
	for _, w := range r.workloads {
		r.AwaitChanges(w, r.expected, why)
	}
}

// waitForTheAnswer has the API server wait for the webhook for as long as it can. The webhook gives up reading after two seconds; on a slow
// machine, its answer would come after the three of the manifests.
func (f *outage) waitForTheAnswer(t *testing.T) {
	t.Helper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: f.in.WebhookConfiguration()}}
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":30}]`))
	require.NoError(t, f.Patch(t.Context(), configuration, patch))
}

// releaseAll sets an image for each workload at once.
func (f *outage) releaseAll(t *testing.T, workloads []observe.Workload, image, failure string) {
	t.Helper()
	started := time.Now()
	var writing sync.WaitGroup
	for _, w := range workloads {
		writing.Go(func() { assert.NoError(t, f.setImage(t.Context(), w, image), "%s, and a user's write failed", failure) })
	}
	writing.Wait()
	t.Logf("%s: %d writes took %s", failure, len(workloads), time.Since(started))
}

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
		return f.users.Patch(t.Context(), fixture.Object(of), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{`+annotations+`}}}`)))
	}

	var err error
	poll.Repeat(t, attempts, fixture.LeftOut, func(n int) bool {
		return fixture.Promptly(func() { err = annotate(w, wrongProof(n)) }) || apierrors.IsConflict(err)
	})
	require.Error(t, err, "a new proof that does not match is rejected")
	assert.True(t, apierrors.IsConflict(err), "as a conflict, so that clients look again: %v", err)
	assert.Contains(t, err.Error(), "configmap/app", "it names what was compared")

	require.True(t, poll.Repeat(t, attempts, fixture.LeftOut, func(n int) bool {
		return fixture.Promptly(func() {
			assert.NoError(t, annotate(never, wrongProof(n)), "on a workload that never opted in it is purged")
		})
	}), "an attempt was conclusive")
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
	var retry, answer string
	require.True(t, poll.Repeat(t, attempts, fixture.LeftOut, func(n int) bool {
		f.api.SetDelay(1200 * time.Millisecond)
		defer f.api.SetDelay(0)
		began := time.Now()
		code, retry, answer = annotateOnce(f, w, wrongProof(attempts+n))
		return code == http.StatusServiceUnavailable || time.Since(began) < webhookTimeout
	}), "an attempt was conclusive")
	assert.Equal(t, http.StatusServiceUnavailable, code, "what cannot be verified is rejected")
	assert.NotEmpty(t, retry, "and the client gets a time to try again")
	assert.Contains(t, answer, `"causes":[{"reason":"DigestUnverifiable"}]`, "no other 503 has that cause")
}

// annotateOnce writes annotations past the retries of client-go, and returns the status, when to try again, and the body.
func annotateOnce(f *outage, of observe.Workload, annotations string) (code int, retryAfter, answer string) {
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
	read, err := io.ReadAll(response.Body)
	require.NoError(f, err)
	require.NoError(f, response.Body.Close())
	return response.StatusCode, response.Header.Get("Retry-After"), string(read)
}
