package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// The examples for GitOps tools name the chart as it is published, and the chart accepts their values.
func TestGitOpsExamplesInstallTheChart(t *testing.T) {
	t.Parallel()
	application := example(t, "# argo-cd/application.yaml\n")[0]
	assert.Equal(t, "pod-reloader", field(t, application, "spec", "source", "chart"))
	assert.Equal(t, chartVersion(t), field(t, application, "spec", "source", "targetRevision"))
	rendered := acceptsExample(t, field(t, application, "spec", "source", "helm", "valuesObject"))
	ignored, _ := list(field(t, application, "spec", "ignoreDifferences"))[0].(map[string]any)
	assert.Contains(t, rendered, fmt.Sprintf("%v /%v", ignored["kind"], ignored["name"]), "the object whose caBundle is ignored")

	flux := example(t, "# flux/release.yaml\n")
	require.Len(t, flux, 2)
	assert.Equal(t, chartVersion(t), field(t, flux[0], "spec", "ref", "tag"))
	url, _ := field(t, flux[0], "spec", "url").(string)
	assert.True(t, strings.HasSuffix(url, "/charts/pod-reloader"), url)
	acceptsExample(t, field(t, flux[1], "spec", "values"))
}

// example is the YAML of the page about installing that begins with a comment.
func example(t *testing.T, comment string) []map[string]any {
	t.Helper()
	_, block, found := strings.Cut(read(t, "docs/installing.md"), "```yaml\n"+comment)
	require.True(t, found, comment)
	block, _, found = strings.Cut(block, "```")
	require.True(t, found, comment)
	var all []map[string]any
	for text := range strings.SplitSeq(block, "---\n") {
		var object map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &object))
		all = append(all, object)
	}
	return all
}

// acceptsExample renders the chart with values.
func acceptsExample(t *testing.T, values any) objects {
	t.Helper()
	text, err := yaml.Marshal(values)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, err := run(t.Context(), tool(t, "helm", "helm"), append(templateArgs(t, nil), "--values", file)...)
	require.NoError(t, err)
	rendered := parse(t, out)
	assert.Contains(t, container(t, rendered["Deployment pod-reloader/pod-reloader"])["image"], "registry.example.com/pod-reloader:")
	return rendered
}

func chartVersion(t *testing.T) string {
	t.Helper()
	var chart struct{ Version string }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "chart/pod-reloader/Chart.yaml")), &chart))
	return chart.Version
}
