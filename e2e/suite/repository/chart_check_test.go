package repository

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// The pod of `helm test` runs the check where the webhook is called, with the permission to do so, and is not selected as a replica.
func TestChartTestsTheWebhook(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	tests := map[string]struct {
		values    []string
		namespace string
		args      []any
	}{
		"Default":  {namespace: "pod-reloader"},
		"Scoped":   {values: []string{"namespaces={my-app,other}"}, namespace: "my-app"},
		"Given":    {values: []string{"test.namespace=shop", "test.labels.tier=web"}, namespace: "shop", args: []any{"--labels=tier=web"}},
		"Selected": {values: []string{"objectSelector.matchLabels.tier=db"}, namespace: "pod-reloader", args: []any{"--labels=tier=db"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := slices.DeleteFunc(templateArgs(t, test.values), func(arg string) bool { return arg == "--skip-tests" })
			out, err := run(t.Context(), helm, append(args, "--show-only", "templates/tests/check.yaml")...)
			require.NoError(t, err)
			rendered := parse(t, out)
			for key, object := range rendered {
				assert.Equal(t, "test", field(t, object, "metadata", "annotations", "helm.sh/hook"), key)
				assert.Equal(t, "pod-reloader-test", field(t, object, "metadata", "labels", "app.kubernetes.io/name"), "%s: not by the command of docs/upgrading.md", key)
			}
			pod := rendered["Pod pod-reloader/pod-reloader-test"]
			require.NotNil(t, pod)
			assert.NotEqual(t, "pod-reloader", field(t, pod, "metadata", "labels", "app.kubernetes.io/name"), "the Services would select it")
			assert.NotContains(t, field(t, pod, "metadata", "labels"), "app.kubernetes.io/instance")
			only, _ := list(field(t, pod, "spec", "containers"))[0].(map[string]any)
			want := append([]any{"check", "--namespace=" + test.namespace, "--annotation-prefix=pod-reloader.cs.sap.com/"}, test.args...)
			assert.Equal(t, want, only["args"])
			role := "Role " + test.namespace + "/pod-reloader-test"
			assert.Equal(t, "[map[apiGroups:[apps] resources:[deployments] verbs:[create]]]", fmt.Sprint(list(rendered[role]["rules"])))
			assert.Contains(t, rendered, "RoleBinding "+test.namespace+"/pod-reloader-test")
		})
	}
}

// testedReleases are releases, whether they have a pod for `helm test`, where their notes say that workloads are restarted, and whether they
// select workloads by labels.
var testedReleases = map[string]struct {
	namespace string
	values    []string
	test      bool
	notes     string
	selects   bool
}{
	"Default":    {namespace: "pod-reloader", test: true, notes: "in all namespaces but kube-system."},
	"KubeSystem": {namespace: "kube-system", notes: "in all namespaces but kube-system."},
	"Ignored":    {namespace: "dev", values: []string{"namespacesToIgnore={dev}"}, notes: "in all namespaces but kube-system, dev."},
	"Listed":     {namespace: "kube-system", values: []string{"namespaces={a,b}"}, test: true, notes: "in the namespaces a, b."},
	"Selected": {
		namespace: "pod-reloader", values: []string{"namespaceSelector.matchLabels.team=a"},
		notes: "in all namespaces with team=a but kube-system.",
	},
	"SelectedAndNamed": {
		namespace: "pod-reloader", values: []string{"namespaceSelector.matchLabels.team=a", "test.namespace=shop"}, test: true,
		notes: "in all namespaces with team=a but kube-system.",
	},
	"WithoutSecrets": {
		namespace: "pod-reloader", values: []string{withoutSecrets}, test: true,
		notes: "in all namespaces but kube-system.",
	},
	"WorkloadsSelected": {
		namespace: "pod-reloader", values: selected("In", "web"),
		notes: "in all namespaces but kube-system.", selects: true,
	},
	"WorkloadsWithALabel": {
		namespace: "pod-reloader", values: selected("Exists"),
		notes: "in all namespaces but kube-system.", selects: true,
	},
	"WorkloadsSelectedAndTestLabeled": {
		namespace: "pod-reloader", values: append(selected("Exists"), "test.labels.tier=web"), test: true,
		notes: "in all namespaces but kube-system.", selects: true,
	},
	"WorkloadsSelectedByBoth": {
		namespace: "pod-reloader", values: append(selected("Exists"), "objectSelector.matchLabels.tier=web"), test: true,
		notes: "in all namespaces but kube-system.", selects: true,
	},
	"WorkloadsWithALabelOfTheTest": {
		namespace: "pod-reloader", values: []string{"objectSelector.matchLabels.tier=web", "test.labels.tier=web"}, test: true,
		notes: "in all namespaces but kube-system.", selects: true,
	},
	"WorkloadsWithAnotherLabelThanTheTest": {
		namespace: "pod-reloader", values: []string{"objectSelector.matchLabels.tier=web", "test.labels.tier=db"},
		notes: "in all namespaces but kube-system.", selects: true,
	},
	"WorkloadsWithAnotherValueThanTheTest": {
		namespace: "pod-reloader", values: append(selected("In", "web"), "test.labels.tier=db"),
		notes: "in all namespaces but kube-system.", selects: true,
	},
	"WorkloadsLeftOutWithTheTest": {
		namespace: "pod-reloader", values: append(selected("NotIn", "db"), "test.labels.tier=db"),
		notes: "in all namespaces but kube-system.", selects: true,
	},
	"WorkloadsLeftOut": {
		namespace: "pod-reloader", values: selected("NotIn", "db"), test: true,
		notes: "in all namespaces but kube-system.", selects: true,
	},
}

// withoutSecrets is the value with which the chart has no permissions on Secrets.
const withoutSecrets = "secrets.enabled=false"

// selected are values with a requirement of the label tier.
func selected(operator string, labels ...string) []string {
	const path = "objectSelector.matchExpressions[0]."
	values := []string{path + "key=tier", path + "operator=" + operator}
	if len(labels) > 0 {
		values = append(values, path+"values={"+strings.Join(labels, ",")+"}")
	}
	return values
}

// Where the webhook is not called for the Deployment of the test, the chart has no test, which could only fail.
func TestChartHasNoTestWhereTheWebhookIsNotCalled(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	for name, release := range testedReleases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := slices.DeleteFunc(templateArgs(t, release.values), func(arg string) bool { return arg == "--skip-tests" })
			args[slices.Index(args, "--namespace")+1] = release.namespace
			out, err := run(t.Context(), helm, args...)
			require.NoError(t, err)
			_, found := parse(t, out)["Pod "+release.namespace+"/pod-reloader-test"]
			assert.Equal(t, release.test, found)
		})
	}
}

// notesNameTheCheck has Helm render the notes, for which it needs a cluster.
func notesNameTheCheck(t *testing.T, cluster *controlplane.ControlPlane) {
	t.Helper()
	for name, release := range testedReleases {
		args := []string{"install", "pod-reloader", filepath.Join(toolchain.RootOf(t), "chart/pod-reloader"), "--dry-run=client", "--namespace", release.namespace}
		_, notes, found := strings.Cut(string(helmOn(t, cluster, append(args, set(release.values)...)...)), "NOTES:\n")
		require.True(t, found, "%s: helm install prints no notes", name)
		assert.Contains(t, notes, "kubectl rollout status deployment/pod-reloader --namespace "+release.namespace, name)
		assert.Contains(t, notes, release.notes, name)
		assert.Equal(t, !slices.Contains(release.values, withoutSecrets), strings.Contains(notes, "/secrets=c"), name)
		assert.Regexp(t, "(?m)/pod-reloader why deployment/NAME --namespace NAMESPACE$", notes, "%s: why reads the flags of the installation itself", name)
		assert.Equal(t, release.test, strings.Contains(notes, "helm test pod-reloader --namespace "+release.namespace), name)
		assert.Equal(t, !release.test, strings.Contains(notes, "pod-reloader check --namespace"), name)
		assert.Equal(t, !release.test && release.selects, strings.Contains(notes, "--labels=KEY=VALUE"), name)
	}
}
