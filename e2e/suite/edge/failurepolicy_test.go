package edge_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// silence is longer than the API server waits for the webhook.
const silence = 4 * time.Second

// With failurePolicy Fail, a webhook that does not answer stops the writes of annotated workloads, those of the loop
// included, and no others. When it answers again, the reload that is due is made, once.
func webhookThatFailsWrites(t *testing.T, in *installation.Installation) {
	t.Helper()
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	annotated := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	other := s.Deployment("other", fixture.Uses{})
	setFailurePolicy(s, admissionv1.Fail)
	defer setFailurePolicy(s, admissionv1.Ignore)
	in.Balancer().SetDelay(silence)
	defer in.Balancer().SetDelay(0)

	s.Await("failurePolicy Fail to be in effect", func() error {
		if setImage(s, annotated, "example.com/app:2", client.DryRunAll) == nil {
			return errors.New("a write passes without the webhook")
		}
		return nil
	})
	assert.ErrorContains(t, setImage(s, annotated, "example.com/app:2"), "failed calling webhook")
	require.NoError(t, setImage(s, other, "example.com/app:2"), "a workload without an annotation does not depend on the webhook")
	s.SetConfigMap("app", "key", "2")
	s.AwaitEvent(annotated, "ReloadFailed", "failed calling webhook")
	require.NoError(t, s.Watcher.Sync(s.Patiently()))
	s.RequireChanges(annotated, 0, "the loop's writes are rejected as well")
	s.AssertAPIServerCounts(`apiserver_admission_webhook_rejection_count\{error_type="calling_webhook_error",name="mutate\.pod-reloader\.cs\.sap\.com",.*\}`)

	in.Balancer().SetDelay(0)
	s.AwaitExactly(1, "the webhook answers again", annotated)
	s.Await("a write of its user to pass", func() error { return setImage(s, annotated, "example.com/app:2") })
	s.RequireChanges(other, 1, "the user's own")
}

// setFailurePolicy changes the installed webhook configuration, as the chart's value does.
func setFailurePolicy(s *fixture.Fixture, policy admissionv1.FailurePolicyType) {
	s.Helper()
	configuration := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "pod-reloader"}}
	patch := fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/failurePolicy","value":%q}]`, policy)
	require.NoError(s, s.Patch(s.Patiently(), configuration, client.RawPatch(types.JSONPatchType, []byte(patch))))
}

// setImage is a release; the error is the user's.
func setImage(s *fixture.Fixture, of observe.Workload, image string, options ...client.PatchOption) error {
	s.Helper()
	return s.Patch(s.Patiently(), fixture.Object(of), fixture.Image(of, image), options...)
}
