package edge_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// A user who may read the workload and hardly anything else gets as much as that allows, and what is missing.
func TestWhyWithFewPermissions(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	grant(s, "reader", `- {apiGroups: [apps], resources: [deployments], verbs: [get]}
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
- {apiGroups: [batch], resources: [jobs], verbs: [list]} # as the account of an installation may`)
	var output string
	s.Await("the reader's permissions", func() (err error) {
		output, err = s.Installation.WhyAs(t.Context(), controlplane.Identity{User: "reader"}, "deployment/web", "-n", s.Namespace,
			"--namespace-selector=pod-reloader=enabled")
		return err
	})
	assert.Contains(t, output, "nothing is due (every tracked object has the recorded resourceVersion)", w)
	var problems []string
	for line := range strings.Lines(output) {
		if problem, is := strings.CutPrefix(line, "Problem: "); is {
			problems = append(problems, problem)
		}
	}
	require.Len(t, problems, 5, "one line for each permission that is missing: %s", output)
	assert.Contains(t, problems[0], "the flags of the installation are not known")
	assert.Contains(t, problems[1], "the digest key cannot be read")
	assert.Contains(t, problems[2], "cannot show failing watches")
	assert.Contains(t, problems[3], "cannot check --namespace-selector")
	assert.Contains(t, problems[4], "cannot show failed attempts, since the Events cannot be listed")

	_, err := s.Installation.WhyAs(t.Context(), controlplane.Identity{User: "reader"}, "deployment/other", "-n", s.Namespace)
	require.ErrorContains(t, err, "Deployment "+s.Namespace+"/other does not exist; name another namespace with -n")

	_, err = s.Installation.WhyAs(t.Context(), controlplane.Identity{User: "reader"}, "cronjob/nightly", "-n", s.Namespace,
		"--ignored-workload-types=cronjobs")
	require.ErrorContains(t, err, "not handled: --ignored-workload-types names its kind (read the workload: cronjobs.batch")

	s.CreatePromptly(s.Manifest("Job", "import", fixture.Uses{ConfigMaps: []string{"app"}}))
	output, err = s.Installation.WhyAs(t.Context(), controlplane.Identity{User: "reader"}, "job/import", "-n", s.Namespace)
	require.NoError(t, err)
	assert.Contains(t, output, "Job "+s.Namespace+"/import")
	output, err = s.Installation.WhyAs(t.Context(), controlplane.Identity{User: "reader"}, "job/import", "-n", s.Namespace, "--ignored-workload-types=jobs")
	require.NoError(t, err)
	assert.Contains(t, output, "nothing is due (not handled: --ignored-workload-types names its kind)")
	_, err = s.Installation.WhyAs(t.Context(), controlplane.Identity{User: "reader"}, "job/export", "-n", s.Namespace)
	require.ErrorContains(t, err, "Job "+s.Namespace+"/export does not exist")
	_, err = s.Installation.WhyAs(t.Context(), controlplane.Identity{User: "reader"}, "cronjob/import", "-n", s.Namespace)
	require.ErrorContains(t, err, `cannot get resource "cronjobs"`)
}

// The Secrets Store CSI driver is not installed: what else the workload uses is known.
func TestWhyWithoutTheKindsOfTheSecretsStoreDriver(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	manifest := s.Manifest("Deployment", "web", fixture.Uses{
		ConfigMaps: []string{"app"}, Annotations: map[string]string{fixture.ReloaderAuto: "true"},
	})
	require.NoError(t, unstructured.SetNestedSlice(manifest.Object, []any{map[string]any{"name": "secrets", "csi": map[string]any{
		"driver": "secrets-store.csi.k8s.io", "volumeAttributes": map[string]any{"secretProviderClass": "vault"},
	}}}, "spec", "template", "spec", "volumes"))
	s.CreatePromptly(manifest)
	output, err := s.Installation.Why(t.Context(), "deployment/web", "-n", s.Namespace, "--enable-csi-integration")
	require.NoError(t, err)
	assert.Contains(t, output, "web: nothing is due")
	assert.NotContains(t, output, "Problem: ")
}
