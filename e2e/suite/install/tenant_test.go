package install_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// withEvents is the first version of Kubernetes whose ClusterRole admin has the Events of events.k8s.io.
const withEvents = "1.35"

// TestTenant installs the chart as a user who has the ClusterRole admin in one namespace, and what the documentation adds to it.
func TestTenant(t *testing.T) {
	t.Parallel()
	namespace := shared.Namespace(t)
	shared.kubectl(t, "create", "rolebinding", "tenant", "--clusterrole", "admin", "--user", "tenant", "-n", namespace)
	require.NoError(t, await(patiently(t), "the ClusterRole of the tenant", func(ctx context.Context) error {
		_, err := shared.Kubectl(ctx, "auth", "can-i", "create", "roles", "--as", "tenant", "-n", namespace)
		return err
	}))
	values := filepath.Join(t.TempDir(), "values.yaml")
	content := strings.Replace(documented(t, "by-a-tenant/values.yaml"), "my-app", namespace, 1)
	require.NoError(t, os.WriteFile(values, []byte(content), 0o600))
	objects := shared.helm(t, "template", "pod-reloader", shared.chart(), "--validate", "--namespace", namespace, "--values", values)
	apply := func(ctx context.Context) error {
		_, err := shared.KubectlInput(ctx, objects, "apply", "--as", "tenant", "-f", "-")
		return err
	}
	if version.MustParseGeneric(shared.Version()).LessThan(version.MustParseGeneric(withEvents)) {
		err := apply(patiently(t))
		require.ErrorContains(t, err, "attempting to grant RBAC permissions not currently held")
		refused := err.Error()
		assert.Contains(t, refused, `{APIGroups:["events.k8s.io"], Resources:["events"], Verbs:["create" "list" "patch"]}`)
		assert.Equal(t, strings.Count(refused, "{APIGroups:"), strings.Count(refused, `{APIGroups:["events.k8s.io"]`), "nothing else is missing: %s", refused)
		_, err = shared.KubectlInput(patiently(t), documented(t, "by-a-tenant/events.yaml"), "apply", "-f", "-")
		require.NoError(t, err)
	}
	require.NoError(t, await(patiently(t), "the permissions of the tenant", apply))
}

// documented returns a file that docs/installing.md shows.
func documented(t *testing.T, name string) string {
	t.Helper()
	text, err := toolchain.Documented("installing.md", name)
	require.NoError(t, err)
	return text
}
