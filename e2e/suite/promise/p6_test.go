package promise_test

import (
	"context"
	"errors"
	"fmt"
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

// denial denies every write of the workloads in one namespace whose names begin with "poisoned".
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
  - {name: poisoned, expression: "object.metadata.name.startsWith('poisoned')"}
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

// reloadAll changes what workloads depend on, and returns how long it takes until each has had n changes.
func reloadAll(s *fixture.Fixture, all []observe.Workload, n int) time.Duration {
	s.Helper()
	began := time.Now()
	s.SetConfigMap("app", "key", "changed "+strconv.Itoa(n))
	for _, w := range all {
		s.AwaitChanges(w, n, "other workloads that cannot be written must not hold it up")
	}
	return time.Since(began)
}

func TestP6WorkloadsWhoseEveryWriteIsDeniedBlockNoOther(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	deny(s)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	var healthy, poisoned []observe.Workload
	for n := range 50 {
		healthy = append(healthy, s.Workload(fixture.Kinds[n%len(fixture.Kinds)], "healthy"+strconv.Itoa(n), uses))
	}
	changes := 1
	limit := 2*reloadAll(s, healthy, changes) + settle // nothing is denied yet
	for n := range 10 {
		poisoned = append(poisoned, s.Deployment("poisoned"+strconv.Itoa(n), uses))
	}
	awaitDenial(s, poisoned[0])

	for range 2 {
		assert.NoError(t, fixture.Steadily(t, shared, func() error {
			changes++
			if took := reloadAll(s, healthy, changes); took > limit {
				return fmt.Errorf("the others were reloaded within %s, and at most %s is allowed", took, limit)
			}
			return nil
		}))
	}
	s.AwaitEvent(poisoned[0], "ReloadFailed", "writes of this workload are denied")
	output, err := shared.Why(t.Context(), "deployment/poisoned0", "-n", s.Namespace)
	require.NoError(t, err)
	assert.Contains(t, output, "a reload is due (configmap/app modified)")
	assert.Regexp(t, `Warning \S+ ago, ReloadFailed: .*writes of this workload are denied`, output, "and why it is not done")
	s.AwaitExactly(changes, "the retries of other workloads restart nothing again", healthy...)
	for _, w := range poisoned {
		s.RequireChanges(w, 0, "every write of it is denied")
	}

	require.NoError(t, s.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}))
	ctx, cancel := context.WithTimeout(t.Context(), longestPause+fixture.Patience)
	defer cancel()
	for _, w := range poisoned {
		_, err = s.Watcher.AwaitTemplateChanges(ctx, w, 1)
		require.NoError(t, err, "its reload is still due and is made when it can be")
	}
	s.AwaitExactly(1, "changes that could not be followed are one restart in the end", poisoned...)
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
