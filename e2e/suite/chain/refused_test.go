package chain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

const checksum = "pod-reloader.cs.sap.com/referent-checksum"

// refusing is an admission policy of a namespace that refuses published digests.
const refusing = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules:
    - {apiGroups: [kroxylicious.io], apiVersions: ["*"], resources: ["*"], operations: [CREATE, UPDATE]}
  validations:
  - expression: '!has(object.metadata.annotations) || !("` + checksum + `" in object.metadata.annotations)'
    message: digests are not welcome here
    reason: REASON
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`

// An admission policy refuses the annotation. The workload restarts as without it, one Event reports the refusal, and the digest is
// written once the policy is gone.
func TestADigestThatAPolicyRefuses(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"Invalid", "Forbidden"} { // 422 and 403
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			s := newGraphFixture(t, shared)
			policy := strings.NewReplacer("NAME", s.Namespace, "REASON", reason).Replace(refusing)
			require.NoError(t, shared.ControlPlane().Apply(t.Context(), policy))
			s.Await("the policy", func() error {
				probe := s.custom("KafkaService", "probe")
				probe.SetAnnotations(map[string]string{checksum: "1"})
				if err := s.Create(t.Context(), probe, client.DryRunAll); err == nil {
					return errors.New("it is not in force")
				}
				return nil
			})
			k := newKafkaIn(s)
			service := observe.Workload{Kind: "KafkaService", Namespace: k.Namespace, Name: "service"}
			k.AwaitEvent(service, "PublishFailed", "remove publish: true", "digests are not welcome here")
			k.Await("the metric", func() error {
				now, err := shared.Metrics(t.Context())
				if err == nil && now.Sum("pod_reloader_referent_unpublished") < 1 {
					err = errors.New("nothing is unpublished")
				}
				return err
			})
			k.SetSecret("tls", "tls.crt", "2")
			k.rolls(k.proxy, "a refused digest holds nothing")
			k.Reported()
			assert.Len(t, k.Events(service), 1, "another digest was refused, too: that is nothing new")

			k.remove(&admissionv1.ValidatingAdmissionPolicyBinding{}, k.Namespace)
			k.remove(&admissionv1.ValidatingAdmissionPolicy{}, k.Namespace)
			k.Await("the digest", func() error {
				if k.read("KafkaService", "service").GetAnnotations()[checksum] == "" {
					return errors.New("there is none")
				}
				return nil
			})
			k.stays(k.proxy, "publishing restarts nothing")
		})
	}
}

// A leader that was frozen writes a digest late, into the version that it knew. The API server must refuse that, also by force, and where
// nothing would change.
func TestAnApplyToAnEarlierVersionIsAConflict(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	apply := func(to *unstructured.Unstructured, digest string) error {
		u := s.custom("Operated", "late")
		u.SetUID(to.GetUID())
		u.SetResourceVersion(to.GetResourceVersion())
		u.SetAnnotations(map[string]string{checksum: digest})
		return s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("late"), client.ForceOwnership)
	}
	first := s.make("Operated", "late", `{size: 1}`)
	require.NoError(t, apply(first, "1"))
	for _, digest := range []string{"1", "2"} {
		err := apply(first, digest)
		require.True(t, apierrors.IsConflict(err), "digest %s with an earlier resourceVersion: want 409, got %v", digest, err)
	}
	require.NoError(t, apply(s.read("Operated", "late"), "2"))
	assert.Equal(t, "2", s.read("Operated", "late").GetAnnotations()[checksum])
}
