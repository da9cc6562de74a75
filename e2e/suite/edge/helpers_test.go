package edge_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// interval is how often a condition is polled.
const interval = 50 * time.Millisecond

// asked makes attempts at writes that can be made again, until one took so short that the webhook was asked about it for certain. The
// last one counts however long it took.
func asked(s *fixture.Fixture, writes func()) {
	s.Helper()
	poll.Repeat(s, 5, fixture.LeftOut, func(int) bool { return fixture.Promptly(writes) })
}

// stage is a fixture on the shared installation, whose permissions must have been enough up to its end.
func stage(t *testing.T) *fixture.Fixture {
	t.Helper()
	t.Cleanup(func() { fixture.AssertNothingDenied(t, shared) })
	return fixture.New(t, shared)
}

// grant gives a user permissions in the namespace of a fixture: rules of a Role, a line for each.
func grant(s *fixture.Fixture, user, rules string) {
	s.Helper()
	require.NoError(s, s.Installation.ControlPlane().Apply(s.Context(), strings.NewReplacer("NAMESPACE", s.Namespace, "USER", user, "RULES", rules).Replace(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: USER, namespace: NAMESPACE}
rules:
RULES
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: USER, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: USER}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: USER}
`)))
}

// noDummy reports whether a workload has no reload request.
func noDummy(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[fixture.ConfigHash] == ""
}

// canaryName is what the barrier of an installation calls its n-th set of objects.
func canaryName(n int) string { return "canary-" + strconv.Itoa(n) }
