package repository

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// The component namespaced makes a Role of the ClusterRole. What other components change is in it, whether they come before or after it.
func TestComponentsChangeTheRoleOfOneNamespaceInAnyOrder(t *testing.T) {
	t.Parallel()
	kubectl, helm := tool(t, kubernetesTool(), "kubectl"), tool(t, "helm", "helm")
	for component, value := range map[string]string{
		"argo-rollouts":      "reloader.isArgoRollouts=true",
		"csi-integration":    "reloader.enableCSIIntegration=true",
		"deployment-configs": "reloader.isOpenshift=true",
		"recreate-jobs":      "reloader.recreateJobs=true",
		"run-cronjobs":       "reloader.runCronJobs=true",
		"without-secrets":    "secrets.enabled=false",

		"without-stakater-annotations": "reloader.enabled=false",
	} {
		t.Run(component, func(t *testing.T) {
			t.Parallel()
			chart := template(t, helm, "namespaces={my-app}", value)
			for _, order := range [][]string{{"namespaced", component}, {component, "namespaced"}} {
				rendered := kustomize(t, kubectl, order...)
				assert.ElementsMatch(t, chart["Role my-app/pod-reloader-workloads"]["rules"], rendered["Role my-app/pod-reloader-workloads"]["rules"], order)
				for name := range rendered {
					assert.NotRegexp(t, "^ClusterRole(Binding)? pod-reloader$", name)
				}
			}
			assert.ElementsMatch(t, kustomize(t, kubectl, "namespaced", component)["Role pod-reloader/pod-reloader"]["rules"],
				kustomize(t, kubectl, component, "namespaced")["Role pod-reloader/pod-reloader"]["rules"])
		})
	}
}

// The permissions to create Jobs again include those to run CronJobs, which is refused unless it is asked for.
func TestCronJobsRunOnlyWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	kubectl, helm := tool(t, kubernetesTool(), "kubectl"), tool(t, "helm", "helm")
	// argument is the last one of the flag: it counts.
	argument := func(rendered objects) any {
		var last any
		for _, arg := range arguments(t, rendered["Deployment pod-reloader/pod-reloader"]) {
			if text, _ := arg.(string); strings.HasPrefix(text, "--run-cronjobs") {
				last = arg
			}
		}
		return last
	}
	const runs, recreates = "reloader.runCronJobs=true", "reloader.recreateJobs=true"
	assert.Nil(t, argument(template(t, helm)), "the missing permission is reported")
	assert.Equal(t, "--run-cronjobs=false", argument(template(t, helm, recreates)))
	assert.Equal(t, "--run-cronjobs=false", argument(template(t, helm, "args={--run-cronjobs=false}")), "the missing permission is not reported")
	assert.Equal(t, "--run-cronjobs", argument(template(t, helm, runs)))
	assert.Equal(t, "--run-cronjobs", argument(template(t, helm, runs, recreates)))
	assert.Nil(t, argument(kustomize(t, kubectl)))
	for _, other := range []string{"without-webhook", "namespaced", "csi-integration", "client-ca"} {
		for _, components := range [][]string{{other}, {"run-cronjobs", other}, {other, "run-cronjobs"}} {
			want := any("--run-cronjobs")
			if len(components) == 1 {
				want = "--run-cronjobs=false"
			}
			for at := range len(components) + 1 {
				all := slices.Insert(slices.Clone(components), at, "recreate-jobs")
				assert.Equal(t, want, argument(kustomize(t, kubectl, all...)), all)
			}
		}
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
		paths = append(paths, filepath.Join(toolchain.RootOf(t), "manifests/components", component))
	}
	_, err := run(t.Context(), kubectl, "kustomize", kustomization(t, map[string]any{
		"resources": []string{filepath.Join(toolchain.RootOf(t), "manifests")}, "components": paths,
	}))
	return err //nolint:wrapcheck // the caller looks at its text
}
