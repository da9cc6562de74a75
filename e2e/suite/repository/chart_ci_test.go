package repository

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

var (
	metricName  = regexp.MustCompile(`pod_reloader_[a-z_]+[a-z]`)
	groupedBy   = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
	legendLabel = regexp.MustCompile(`{{ *([a-z_]+) *}}`)
)

// labelsOf returns the labels in all matches of an expression, each of which is a label or a list of them.
func labelsOf(expression *regexp.Regexp, text string) []string {
	var labels []string
	for _, match := range expression.FindAllStringSubmatch(text, -1) {
		labels = append(labels, strings.Split(match[1], ", ")...)
	}
	return labels
}

const valuesDirectory = "chart/pod-reloader/ci"

// valueFiles are the examples of values that `helm lint` and chart-testing use as well, and what is rendered from each.
var valueFiles = map[string]struct {
	has, lacks []string
	check      func(t *testing.T, rendered objects)
}{
	"default-values.yaml": {
		has: []string{
			"Deployment pod-reloader/pod-reloader", "ClusterRole /pod-reloader", "PodDisruptionBudget pod-reloader/pod-reloader",
			"ClusterRole /pod-reloader-certificates",
		},
		lacks: []string{
			"ServiceMonitor pod-reloader/pod-reloader", "ConfigMap pod-reloader/pod-reloader-dashboard", "Certificate pod-reloader/pod-reloader",
		},
	},
	"hardened-values.yaml": {
		has: []string{
			"ServiceMonitor pod-reloader/reload", "PrometheusRule pod-reloader/reload", "ConfigMap monitoring/reload-dashboard",
			"FlowSchema /reload", "FlowSchema /reload-leader-election", "ConfigMap /pod-reloader-extra", "ConfigMap /reload-text", "Certificate pod-reloader/reload",
		},
		lacks: []string{"ClusterRole /reload-certificates", "Certificate pod-reloader/reload-ca", "Issuer pod-reloader/reload-ca", "Issuer pod-reloader/reload-selfsigned"},
		check: checkHardened,
	},
	"tenant-values.yaml": {
		has: []string{"Role my-app/pod-reloader-workloads", "Role my-other-app/pod-reloader-workloads", "PrometheusRule pod-reloader/pod-reloader"},
		lacks: []string{
			"ClusterRole /pod-reloader", "ClusterRoleBinding /pod-reloader", "MutatingWebhookConfiguration /pod-reloader",
			"ClusterRole /pod-reloader-certificates",
			"Certificate pod-reloader/pod-reloader", "Service pod-reloader/pod-reloader",
		},
		check: func(t *testing.T, rendered objects) {
			t.Helper()
			rules := fmt.Sprint(rendered["PrometheusRule pod-reloader/pod-reloader"])
			assert.Contains(t, rules, "PodReloaderHasNoLeader")
			assert.NotContains(t, rules, "PodReloaderWebhookIsNotCalled", "it would always fire")
			assert.NotContains(t, rules, "apiserver_admission_", "there may be another installation with a webhook")
			assert.NotContains(t, rules, "certificate", "there is none")
		},
	},
	"given-values.yaml": {
		has: []string{"PodMonitor pod-reloader/pod-reloader", "MutatingWebhookConfiguration /pod-reloader"},
		lacks: []string{
			"ServiceAccount pod-reloader/ours", "ClusterRole /pod-reloader", "Role pod-reloader/pod-reloader", "RoleBinding pod-reloader/pod-reloader",
			"PodDisruptionBudget pod-reloader/pod-reloader", "Certificate pod-reloader/pod-reloader",
		},
		check: checkGiven,
	},
}

func checkHardened(t *testing.T, rendered objects) {
	t.Helper()
	deployment := rendered["Deployment pod-reloader/reload"]
	pod := container(t, deployment)
	assert.Equal(t, "registry.example.com/mirror/pod-reloader@sha256:"+strings.Repeat("0123456789abcdef", 4), pod["image"])
	assert.Subset(t, pod["args"], []any{
		"--webhook-bind-address=:10250", "--metrics-bind-address=:9090", "--health-probe-bind-address=:9091", "--installation-name=reload",
		"--config=configmap:pod-reloader/reload", "--log-format=text", "--log-level=debug", "--settle=2s",
	})
	assert.Equal(t, 1, strings.Count(fmt.Sprint(pod["env"]), "GOMEMLIMIT"), "the given one")
	assert.Contains(t, fmt.Sprint(pod["env"]), "map[containerName:manager resource:limits.memory]")
	assert.Contains(t, fmt.Sprint(pod["ports"]), "containerPort:10250 name:webhook")
	assert.Contains(t, fmt.Sprint(pod["volumeMounts"]), "/extra")
	spec := fmt.Sprint(field(t, deployment, "spec", "template", "spec"))
	assert.Contains(t, spec, "imagePullSecrets:[map[name:registry] map[name:second]]")
	assert.Contains(t, spec, "labelSelector:map[matchLabels:map[app.kubernetes.io/instance:pod-reloader app.kubernetes.io/name:reload]]")
	labels, _ := field(t, deployment, "spec", "template", "metadata", "labels").(map[string]any)
	assert.Equal(t, "platform", labels["team"])
	selector, _ := field(t, deployment, "spec", "selector", "matchLabels").(map[string]any)
	assert.NotContains(t, selector, "team", "a selector cannot be changed later")
	assert.Subset(t, labels, selector)
	webhook, _ := list(rendered["MutatingWebhookConfiguration /reload"]["webhooks"])[0].(map[string]any)
	assert.Len(t, webhook["matchConditions"], 2)
	assert.Equal(t, "Fail", webhook["failurePolicy"])
	budget := field(t, rendered["PodDisruptionBudget pod-reloader/reload"], "spec")
	assert.Contains(t, fmt.Sprint(budget), "minAvailable:2")
	assert.NotContains(t, fmt.Sprint(budget), "maxUnavailable")
	rules := fmt.Sprint(rendered["PrometheusRule pod-reloader/reload"])
	assert.NotContains(t, rules, "PodReloaderEventsArePending")
	assert.Contains(t, rules, "alert:Mine")
	issuer := field(t, rendered["Certificate pod-reloader/reload"], "spec", "issuerRef")
	assert.Equal(t, map[string]any{"name": "platform-ca", "kind": "ClusterIssuer", "group": "cert-manager.io"}, issuer)
	assert.Equal(t, "prometheus", field(t, rendered["ServiceMonitor pod-reloader/reload"], "metadata", "labels", "release"), "its own label has precedence")
	for key, object := range rendered {
		if strings.HasPrefix(key, "ConfigMap /") {
			continue // an object of the user's
		}
		assert.Equal(t, "platform", field(t, object, "metadata", "labels", "team"), key)
		assert.Equal(t, "platform", field(t, object, "metadata", "annotations", "example.com/owner"), key)
	}
}

func checkGiven(t *testing.T, rendered objects) {
	t.Helper()
	deployment := rendered["Deployment pod-reloader/pod-reloader"]
	spec, _ := field(t, deployment, "spec", "template", "spec").(map[string]any)
	assert.Equal(t, map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}, spec["securityContext"])
	assert.Equal(t, "ours", spec["serviceAccountName"])
	assert.Equal(t, "ClusterFirstWithHostNet", spec["dnsPolicy"])
	assert.NotContains(t, spec, "topologySpreadConstraints")
	assert.Contains(t, fmt.Sprint(spec["volumes"]), "secretName:our-certificate")
	configuration := rendered["MutatingWebhookConfiguration /pod-reloader"]
	assert.NotContains(t, field(t, configuration, "metadata", "annotations"), "cert-manager.io/inject-ca-from", "cert-manager would overwrite the given bundle")
	webhook, _ := list(configuration["webhooks"])[0].(map[string]any)
	bundle := field(t, webhook, "clientConfig", "caBundle")
	assert.True(t, strings.HasPrefix(fmt.Sprint(bundle), "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS"), bundle)
	assert.Equal(t, "Never", webhook["reinvocationPolicy"])
	assert.NotContains(t, webhook, "matchConditions")
}

func TestChartRendersItsValueFiles(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	files, err := os.ReadDir(filepath.Join(toolchain.RootOf(t), valuesDirectory))
	require.NoError(t, err)
	require.Len(t, files, len(valueFiles))
	for name, want := range valueFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(toolchain.RootOf(t), valuesDirectory, name)
			_, err := run(t.Context(), helm, "lint", filepath.Join(toolchain.RootOf(t), "chart/pod-reloader"), "--strict", "--values", file, "--kube-version", "1.36.0")
			require.NoError(t, err)
			rendered := templateFile(t, helm, name)
			for _, key := range want.has {
				assert.Contains(t, rendered, key)
			}
			for _, key := range want.lacks {
				assert.NotContains(t, rendered, key)
			}
			if want.check != nil {
				want.check(t, rendered)
			}
		})
	}
}

// OpenShift is found by what the cluster serves.
func TestChartLeavesTheUserToOpenShift(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	tests := map[string]struct {
		values, cluster []string
		fixed           bool
	}{
		"Other":         {fixed: true},
		"OpenShift":     {cluster: []string{"--api-versions", "security.openshift.io/v1"}},
		"SwitchedOff":   {cluster: []string{"--api-versions", "security.openshift.io/v1"}, values: []string{"openshift=disabled"}, fixed: true},
		"RemovedByHand": {values: []string{"podSecurityContext.runAsUser=null"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t.Context(), helm, append(templateArgs(t, test.values), test.cluster...)...)
			require.NoError(t, err)
			context, _ := field(t, parse(t, out)["Deployment pod-reloader/pod-reloader"], "spec", "template", "spec", "securityContext").(map[string]any)
			assert.Equal(t, true, context["runAsNonRoot"])
			_, found := context["runAsUser"]
			assert.Equal(t, test.fixed, found)
		})
	}
}

// The alerts of the chart are those of the documentation, whose metrics are compared with those that the program serves.
func TestAlertsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	text := read(t, "chart/pod-reloader/files/alerts.yaml")
	runbook := read(t, "docs/runbook.md")
	assert.Contains(t, read(t, "docs/monitoring.md"), "```text\n"+text+"```\n")
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &rules))
	require.Len(t, rules.Groups, 1)
	require.NotEmpty(t, rules.Groups[0].Rules)
	for _, rule := range rules.Groups[0].Rules {
		row := "(?m)^\\| [^|]*`" + rule.Alert + "`[^|]* \\| [^|]+ \\| [^|]+ \\|$"
		assert.Regexp(t, row, runbook, "the runbook has no row with the effect, the urgency and what to do")
		assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		assert.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"], rule.Alert)
		assert.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), rule.Expr)
	}
}

func TestDashboardShowsDocumentedMetrics(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Templating struct{ List []struct{ Name string } }
		Panels     []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	text := read(t, "chart/pod-reloader/files/dashboard.json")
	require.NoError(t, json.Unmarshal([]byte(text), &dashboard))
	documented := read(t, "docs/monitoring.md")
	require.NotEmpty(t, dashboard.Panels)
	assert.Equal(t, []struct{ Name string }{{"datasource"}, {"cluster"}, {"namespace"}, {"job"}}, dashboard.Templating.List)
	for _, panel := range dashboard.Panels {
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			assert.Equal(t, strings.Count(target.Expr, "pod_reloader_"), strings.Count(target.Expr, `{cluster="$cluster", namespace="$namespace", job="$job"}`),
				"%s: not of one installation: %s", panel.Title, target.Expr)
			metrics := metricName.FindAllString(target.Expr, -1)
			assert.NotEmpty(t, metrics, target.Expr)
			for _, label := range append(labelsOf(groupedBy, target.Expr), labelsOf(legendLabel, target.LegendFormat)...) {
				row := regexp.MustCompile("(?m)^\\| `" + strings.TrimSuffix(metrics[0], "_bucket") + "` \\| [^|;]*; [^|]*`" + label + "`")
				assert.True(t, label == "le" || row.MatchString(documented), "%s: no label %s of %s", panel.Title, label, metrics[0])
			}
			for _, metric := range metrics {
				assert.Contains(t, documented, "| `"+strings.TrimSuffix(metric, "_bucket")+"` |", "%s: %s", panel.Title, target.Expr)
			}
			for _, pair := range []string{"()", "{}", "[]"} {
				assert.Equal(t, strings.Count(target.Expr, pair[:1]), strings.Count(target.Expr, pair[1:]), target.Expr)
			}
		}
	}
	rendered := templateFile(t, tool(t, "helm", "helm"), "hardened-values.yaml")
	assert.Equal(t, strings.TrimSpace(text), field(t, rendered["ConfigMap monitoring/reload-dashboard"], "data", "pod-reloader.json"))
}

// acceptsChartValues has the API server admit what each file of values renders, without storing it. Server-side apply, as Helm 4 uses it,
// refuses more than a creation does.
func acceptsChartValues(t *testing.T, cluster *controlplane.ControlPlane) {
	t.Helper()
	helm, api := tool(t, "helm", "helm"), cluster.Client()
	for _, namespace := range []string{"my-other-app", "monitoring"} {
		createNamespace(t, api, namespace, nil)
	}
	for name := range valueFiles {
		for key, object := range templateFile(t, helm, name) {
			kind := &unstructured.Unstructured{Object: object}
			group := kind.GroupVersionKind().Group
			if group == "cert-manager.io" || group == "monitoring.coreos.com" {
				continue // no such kind here
			}
			if kind.GetKind() == "ConfigMap" && kind.GetNamespace() == "" {
				kind.SetNamespace("pod-reloader") // as Helm does
			}
			text, err := json.Marshal(object)
			require.NoError(t, err)
			err = api.Patch(t.Context(), kind, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("helm"), client.DryRunAll,
				client.FieldValidation(metav1.FieldValidationStrict))
			assert.NoError(t, err, "%s: %s", name, key)
		}
	}
	for _, path := range guardedPaths {
		rendered := template(t, helm, "guard.enabled=true", "workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A",
			"workloadKinds[0].resource=as", "workloadKinds[0].template="+path)
		policy := &unstructured.Unstructured{Object: rendered["ValidatingAdmissionPolicy /pod-reloader-guard"]}
		assert.NoError(t, api.Create(t.Context(), policy, client.DryRunAll), path)
	}
}

// guardedPaths are paths of pod templates that the program takes, and that CEL does not take as they are.
var guardedPaths = []string{"spec", ".spec.template", ".spec.pod.template", "spec.my-pod", "spec.in.my-pod.namespace.template"}

// templateFile renders the chart with a file of ci/.
func templateFile(t *testing.T, helm, name string) objects {
	t.Helper()
	out, err := run(t.Context(), helm, append(templateArgs(t, nil), "--values", filepath.Join(toolchain.RootOf(t), valuesDirectory, name))...)
	require.NoError(t, err)
	return parse(t, out)
}
