package edge_test

import (
	"strconv"
	"testing"
	"time"

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

// noDummy reports whether a workload has no reload request.
func noDummy(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[fixture.ConfigHash] == ""
}

// canaryName is what the barrier of an installation calls its n-th set of objects.
func canaryName(n int) string { return "canary-" + strconv.Itoa(n) }
