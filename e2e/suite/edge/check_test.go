package edge_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// While the webhook is called and cannot stamp, since a permission is missing, `check` says so: the network and the certificate are in
// order.
func checkNamesWhyTheWebhookDoesNotStamp(t *testing.T, in *installation.Installation) {
	t.Helper()
	s := fixture.New(t, in)
	check := func() error {
		_, err := in.Check(s.Context(), "-n", s.Namespace, "--timeout=0s")
		return err
	}
	s.Await("the webhook", check)
	role := &rbacv1.ClusterRole{}
	require.NoError(t, s.Client.Get(s.Context(), types.NamespacedName{Name: "pod-reloader"}, role))
	rules := slices.Clone(role.Rules)
	for n, rule := range role.Rules {
		if slices.Contains(rule.Resources, "configmaps") {
			role.Rules[n].Verbs = []string{"list", "watch"}
		}
	}
	require.NoError(t, s.Update(s.Context(), role))
	// The next tests of the package need the permission, whatever this one finds.
	defer func() {
		require.NoError(t, s.Client.Get(s.Context(), types.NamespacedName{Name: "pod-reloader"}, role))
		role.Rules = rules
		require.NoError(t, s.Update(s.Context(), role))
		s.Await("the permission to be back", check)
	}()
	var failed error
	s.Await("the permission to be gone", func() error {
		if failed = check(); failed != nil && strings.Contains(failed.Error(), "forbidden") {
			return nil
		}
		return fmt.Errorf("check does not name the missing permission: %w", cmp.Or(failed, assert.AnError))
	})
	const reason = "pod-reloader did not update the config-hash: "
	require.ErrorContains(t, failed, "the API server calls the webhook, but it did not stamp the Deployment: "+reason)
	assert.Equal(t, 1, strings.Count(failed.Error(), "pod-reloader: warning: "+reason), failed)
}
