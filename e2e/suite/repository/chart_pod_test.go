package repository

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// The pods have the labels of the selector. The other labels of the chart are on its objects only.
func TestChartTakesLabelsOfPods(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	for _, label := range []string{"app.kubernetes.io/managed-by", "helm.sh/chart", "app.kubernetes.io/version"} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			rendered := renderJSON(t, helm, map[string]string{"podLabels": `{"` + label + `":"mine"}`})
			labels := field(t, rendered[deployment], "spec", "template", "metadata", "labels")
			want := map[string]any{label: "mine", "app.kubernetes.io/name": "pod-reloader", "app.kubernetes.io/instance": "pod-reloader"}
			assert.Equal(t, want, labels)
		})
	}
	requireRefusals(t, map[string]refusal{
		"Name": {
			reason: "it would be there twice, and the selector depends on it",
			values: []string{`podLabels.app\.kubernetes\.io/name=a`},
			want:   "podLabels has app.kubernetes.io/name, which the chart sets",
		},
		"Instance": {
			reason: "the same for the other label of the selector",
			values: []string{`podLabels.app\.kubernetes\.io/instance=a`},
			want:   "podLabels has app.kubernetes.io/instance, which the chart sets",
		},
		"ChartOnAllObjects": {
			reason: "it would be there twice",
			values: []string{`commonLabels.helm\.sh/chart=a`},
			want:   "commonLabels has helm.sh/chart, which the chart sets",
		},
	})
}

// What an item sets is not rendered a second time: kubectl and kustomize refuse a key that is there twice.
func TestChartCompletesTopologySpreadConstraints(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	const item = `"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"`
	labels := map[string]any{"app.kubernetes.io/name": "pod-reloader", "app.kubernetes.io/instance": "pod-reloader"}
	selector := map[string]any{"matchLabels": labels}
	of := func(selector, keys any) map[string]any {
		want := map[string]any{"maxSkew": float64(1), "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
		if keys != nil {
			want["matchLabelKeys"] = keys
		}
		return want
	}
	for name, tc := range map[string]struct {
		more string
		want map[string]any
	}{
		"Nothing": {want: of(selector, []any{"pod-template-hash"})},
		"Keys":    {more: `,"matchLabelKeys":["a"]`, want: of(selector, []any{"a"})},
		"NoKeys":  {more: `,"matchLabelKeys":[]`, want: of(selector, []any{})},
		"Selector": {
			more: `,"labelSelector":{"matchLabels":{"a":"b"}}`, want: of(map[string]any{"matchLabels": map[string]any{"a": "b"}}, nil),
		},
		"AllPods":       {more: `,"labelSelector":{}`, want: of(map[string]any{}, nil)},
		"AllPodsNoKeys": {more: `,"labelSelector":{},"matchLabelKeys":[]`, want: of(map[string]any{}, []any{})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered := renderJSON(t, helm, map[string]string{"topologySpreadConstraints": `[{` + item + tc.more + `}]`})
			assert.Equal(t, []any{tc.want}, field(t, rendered[deployment], "spec", "template", "spec", "topologySpreadConstraints"))
		})
	}
}

// The annotation of the values replaces that of the chart. A key that is there twice is refused, as above.
func TestChartTakesTheDefaultContainerOfPods(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	const key = "kubectl.kubernetes.io/default-container"
	for name, tc := range map[string]struct {
		set  string
		want map[string]any
	}{
		"Default":    {set: `null`, want: map[string]any{key: "manager"}},
		"Annotation": {set: `{"a":"b"}`, want: map[string]any{key: "manager", "a": "b"}},
		"Container":  {set: `{"` + key + `":"sidecar"}`, want: map[string]any{key: "sidecar"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered := renderJSON(t, helm, map[string]string{"podAnnotations": tc.set})
			assert.Equal(t, tc.want, field(t, rendered[deployment], "spec", "template", "metadata", "annotations"))
		})
	}
}

// A parent chart that has the chart twice needs the names that docs/installing.md gives: no Service and no PodDisruptionBudget selects the
// pods of both.
func TestChartTwiceInOneRelease(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	chart := os.DirFS(filepath.Join(toolchain.RootOf(t), "chart/pod-reloader"))
	require.NoError(t, os.CopyFS(filepath.Join(directory, "charts/pod-reloader"), chart))
	for file, text := range map[string]string{
		"Chart.yaml": `{apiVersion: v2, name: parent, version: 1.0.0, dependencies: [
			{name: pod-reloader, version: "*", alias: team-a}, {name: pod-reloader, version: "*", alias: team-b}]}`,
		"values.yaml": `{team-a: {fullnameOverride: a, nameOverride: a}, team-b: {fullnameOverride: b, nameOverride: b}}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, file), []byte(text), 0o600))
	}
	out, err := run(t.Context(), tool(t, "helm", "helm"),
		"template", "parent", directory, "--namespace", "pod-reloader", "--kube-version", "1.36.0", "--skip-tests")
	require.NoError(t, err)
	rendered := parse(t, out)
	for _, name := range []string{"a", "b"} {
		pods, _ := field(t, rendered["Deployment pod-reloader/"+name], "spec", "template", "metadata", "labels").(map[string]any)
		assert.Equal(t, map[string]any{"app.kubernetes.io/name": name, "app.kubernetes.io/instance": "parent"}, pods)
		assert.Equal(t, pods, field(t, rendered["Service pod-reloader/"+name], "spec", "selector"))
		assert.Equal(t, pods, field(t, rendered["Service pod-reloader/"+name+"-metrics"], "spec", "selector"))
		assert.Equal(t, pods, field(t, rendered["PodDisruptionBudget pod-reloader/"+name], "spec", "selector", "matchLabels"))
	}
}
