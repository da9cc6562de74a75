package edge_test

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
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

// ours are the annotations of a workload that pod-reloader reads or writes.
func ours(object *unstructured.Unstructured) map[string]string {
	annotations := object.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !strings.HasPrefix(key, "pod-reloader.cs.sap.com/") })
	return annotations
}

// unmanaged asserts that a workload has no managed annotation.
func unmanaged(s *fixture.Fixture, of observe.Workload, why string) {
	s.Helper()
	stored := s.Get(of)
	for _, key := range []string{fixture.ConfigHash, fixture.ConfigRecord, fixture.LastReload} {
		assert.NotContains(s, stored.GetAnnotations(), key, "%s: %s", of, why)
	}
	for _, key := range []string{fixture.ConfigHash, fixture.ConfigRestart} {
		assert.NotContains(s, fixture.TemplateAnnotations(stored), key, "%s: %s", of, why)
	}
}

// stage is a fixture on the shared installation, whose permissions must have been enough up to its end.
func stage(t *testing.T) *fixture.Fixture {
	t.Helper()
	t.Cleanup(func() { nothingDenied(t, shared) })
	return fixture.New(t, shared)
}

// nothingDenied asserts that no request of the installation was denied so far.
func nothingDenied(t testing.TB, in *installation.Installation) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), fixture.Patience)
	defer cancel()
	requests, err := in.ControlPlane().Audit().All(ctx)
	require.NoError(t, err)
	for _, r := range requests.By(in.Identity().User).Denied() {
		if strings.Contains(r.Message, "because it is being terminated") {
			continue // a namespace that is deleted takes no new Events
		}
		assert.Fail(t, "a permission is missing in manifests/", "%s in %q was denied: %s", r.What(), r.Namespace, r.Message)
	}
}

// noDummy reports whether a workload has no reload request.
func noDummy(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[fixture.ConfigHash] == ""
}

// canaryName is what the barrier of an installation calls its n-th set of objects.
func canaryName(n int) string { return "canary-" + strconv.Itoa(n) }
