package promise_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// denial denies every write of the workload "poisoned" in one namespace.
const denial = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}
  matchConditions:
  - {name: poisoned, expression: "object.metadata.name == 'poisoned'"}
  validations:
  - {expression: "false", message: writes of this workload are denied}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec:
  policyName: NAME
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}}
`

// longestPause is that between two attempts at a write that is denied: the longer it has been denied, the longer is the next pause.
const longestPause = 5 * time.Minute

func TestP6WorkloadWhoseEveryWriteIsDeniedBlocksNoOther(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	deny(s)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	poisoned := s.Deployment("poisoned", fixture.Uses{ConfigMaps: []string{"app"}})
	var healthy []observe.Workload
	for n := range 50 {
		healthy = append(healthy, s.Workload(kinds[n%len(kinds)], "healthy"+strconv.Itoa(n), fixture.Uses{ConfigMaps: []string{"app"}}))
	}
	awaitDenial(s, poisoned)

	for round := 1; round <= 3; round++ {
		s.SetConfigMap("app", "key", "changed "+strconv.Itoa(round))
		for _, w := range healthy {
			s.AwaitChanges(w, round, "another workload that cannot be written must not hold it up")
		}
	}
	s.AwaitEvent(poisoned, "ReloadFailed", "writes of this workload are denied")
	output, err := shared.Why(t.Context(), "deployment/poisoned", "-n", s.Namespace)
	require.NoError(t, err)
	assert.Contains(t, output, "a reload is due (configmap/app modified)")
	assert.Regexp(t, `Warning \S+ ago, ReloadFailed: .*writes of this workload are denied`, output, "and why it is not done")
	s.Settled()
	for _, w := range healthy {
		s.AssertChanges(w, 3, "the retries of another workload restart nothing again")
	}
	s.RequireChanges(poisoned, 0, "every write of it is denied")

	require.NoError(t, s.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}))
	ctx, cancel := context.WithTimeout(t.Context(), longestPause+fixture.Patience)
	defer cancel()
	_, err = s.Watcher.AwaitTemplateChanges(ctx, poisoned, 1)
	require.NoError(t, err, "its reload is still due and is made when it can be")
	s.Settled()
	s.AssertChanges(poisoned, 1, "three changes that could not be followed are one restart in the end")
}

func deny(s *fixture.Fixture) {
	s.Helper()
	require.NoError(s, s.Installation.ControlPlane().Apply(s.Context(), strings.ReplaceAll(denial, "NAME", s.Namespace)))
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), fixture.Patience)
		defer cancel()
		_ = s.Delete(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}})
		_ = s.Delete(ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}})
	})
}

// awaitDenial waits until the API server has taken in the policy.
func awaitDenial(s *fixture.Fixture, of observe.Workload) {
	s.Helper()
	s.Await("the policy to be in effect", func() error {
		object := s.Get(of)
		object.SetLabels(map[string]string{"try": "it"})
		err := s.Update(s.Context(), object, client.DryRunAll)
		if err == nil {
			return errors.New("a write is not denied yet")
		}
		if !strings.Contains(err.Error(), "writes of this workload are denied") {
			return err
		}
		return nil
	})
}
