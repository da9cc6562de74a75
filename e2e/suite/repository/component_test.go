package repository

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The component namespaced has a Role of its own, which the components after it change as they change the ClusterRole. Before it, their
// rights would be missing, or those to Secrets would stay: the rendering stops.
func TestComponentsFollowTheRoleOfOneNamespace(t *testing.T) {
	t.Parallel()
	kubectl, helm := tool(t, kubernetesTool(), "kubectl"), tool(t, "helm", "helm")
	for component, value := range map[string]string{
		"argo-rollouts":   "reloader.isArgoRollouts=true",
		"csi-integration": "reloader.enableCSIIntegration=true",
		"recreate-jobs":   "reloader.recreateJobs=true",
		"run-cronjobs":    "reloader.runCronJobs=true",
		"without-secrets": "secrets.enabled=false",
	} {
		t.Run(component, func(t *testing.T) {
			t.Parallel()
			const role = "Role my-app/pod-reloader-workloads"
			want := template(t, helm, "namespaces={my-app}", value)[role]["rules"]
			assert.ElementsMatch(t, want, kustomize(t, kubectl, "namespaced", component)[role]["rules"])
			assert.ErrorContains(t, renderComponents(t, kubectl, component, "namespaced"), "testing value /rules/")
		})
	}
}

// A label selects namespaces of the whole cluster: a Role in one of them cannot grant to see it.
func TestNamespaceSelectorNeedsTheWholeCluster(t *testing.T) {
	t.Parallel()
	kubectl := tool(t, kubernetesTool(), "kubectl")
	for _, components := range [][]string{{"namespaced", "namespace-selector"}, {"namespace-selector", "namespaced"}} {
		assert.ErrorContains(t, renderComponents(t, kubectl, components...), "test failed", components)
	}
	require.NoError(t, renderComponents(t, kubectl, "namespace-selector"))
}

// renderComponents returns the error of kustomize.
func renderComponents(t *testing.T, kubectl string, components ...string) error {
	t.Helper()
	paths := make([]string, 0, len(components))
	for _, component := range components {
		paths = append(paths, filepath.Join(root(t), "manifests/components", component))
	}
	_, err := run(t.Context(), kubectl, "kustomize", kustomization(t, map[string]any{
		"resources": []string{filepath.Join(root(t), "manifests")}, "components": paths,
	}))
	return err //nolint:wrapcheck // the caller looks at its text
}
