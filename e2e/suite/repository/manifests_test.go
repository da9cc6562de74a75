package repository

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// objects are what a rendering consists of, by "Kind namespace/name".
type objects map[string]map[string]any

// withCertManager, as a component of a variant, means that selfManaged is not added. The manifests have cert-manager by default,
// the chart does not.
const (
	withCertManager = "cert-manager"
	selfManaged     = "self-managed-certificates"
)

// variants are the installations that both manifests/ and the chart can render.
var variants = map[string]struct {
	reason     string
	components []string
	values     []string
}{
	"Default": {
		reason: "the suites test this installation",
	},
	"Namespaced": {
		reason:     "permissions in one namespace only",
		components: []string{"namespaced"},
		values:     []string{"namespaces={my-app}"},
	},
	"CertManager": {
		reason:     "the default of the manifests",
		components: []string{withCertManager},
		values:     []string{"webhook.certificates.mode=cert-manager"},
	},
	"CertManagerNamespaced": {
		reason:     "permissions on a webhook configuration are for self-managed certificates only",
		components: []string{withCertManager, "namespaced"},
		values:     []string{"webhook.certificates.mode=cert-manager", "namespaces={my-app}"},
	},
	"WithoutWebhook": {
		reason:     "direct mode: neither webhook nor certificate",
		components: []string{"without-webhook"},
		values:     []string{"webhook.enabled=false"},
	},
	"NamespaceSelector": {
		reason:     "webhook and loop select the same namespaces",
		components: []string{"namespace-selector"},
		values:     []string{"namespaceSelector.matchLabels.pod-reloader=enabled"},
	},
	"ObjectSelector": {
		reason:     "webhook and loop select the same workloads",
		components: []string{"object-selector"},
		values:     []string{"objectSelector.matchLabels.pod-reloader=enabled"},
	},
	"BothSelectors": {
		reason:     "each has a flag of its own",
		components: []string{"namespace-selector", "object-selector"},
		values:     []string{"namespaceSelector.matchLabels.pod-reloader=enabled", "objectSelector.matchLabels.pod-reloader=enabled"},
	},
	"AutoReloadAll": {
		reason:     "the webhook is called for every workload",
		components: []string{"auto-reload-all"},
		values:     []string{"reloader.autoReloadAll=true"},
	},
	"AutoReloadAllWithoutWebhook": {
		reason:     "there is no condition to remove",
		components: []string{"auto-reload-all", "without-webhook"},
		values:     []string{"reloader.autoReloadAll=true", "webhook.enabled=false"},
	},
	"ArgoRollouts": {
		reason:     "a flag, a rule and permissions",
		components: []string{"argo-rollouts"},
		values:     []string{"reloader.isArgoRollouts=true"},
	},
	"DeploymentConfigs": {
		reason:     "a flag, a rule and permissions",
		components: []string{"deployment-configs"},
		values:     []string{"reloader.isOpenshift=true"},
	},
	"CSIIntegration": {
		reason:     "a flag and permissions",
		components: []string{"csi-integration"},
		values:     []string{"reloader.enableCSIIntegration=true"},
	},
	"RunCronJobs": {
		reason:     "permissions, and the flag",
		components: []string{"run-cronjobs"},
		values:     []string{"reloader.runCronJobs=true"},
	},
	"RecreateJobs": {
		reason:     "permissions, in the namespace of the installation as well, and a flag that runs no CronJob",
		components: []string{"recreate-jobs"},
		values:     []string{"reloader.recreateJobs=true"},
	},
	"WithoutStakaterAnnotations": {
		reason:     "an excluded dialect costs no call",
		components: []string{"without-stakater-annotations"},
		values:     []string{"reloader.enabled=false"},
	},
	"WithoutSecrets": {
		reason:     "no permission on the Secrets of workloads",
		components: []string{"without-secrets"},
		values:     []string{"secrets.enabled=false"},
	},
	"Guard": {
		reason:     "the API server limits the account to what the program does",
		components: []string{"guard"},
		values:     []string{"guard.enabled=true"},
	},
	"ClientCA": {
		reason:     "a flag and a volume",
		components: []string{"client-ca"},
		values:     []string{"webhook.clientCA.configMap=pod-reloader-client-ca"},
	},
	"FlowSchema": {
		reason:     "an overloaded API server serves it before other accounts",
		components: []string{"flow-schema"},
		values:     []string{"flowSchema.enabled=true"},
	},
	"NetworkPolicy": {
		reason:     "only the ports that are served",
		components: []string{"network-policy"},
		values:     []string{"networkPolicy.enabled=true"},
	},
	"OpenShift": {
		reason:     "the cluster assigns the UID",
		components: []string{"openshift"},
		values:     []string{"openshift=enabled"},
	},
	"SecureMetrics": {
		reason:     "/metrics requires the permission to get it",
		components: []string{"secure-metrics"},
		values:     []string{"metrics.secure=true"},
	},
	"NamespacedSecureMetrics": {
		reason:     "the permission to review tokens remains when the cluster-wide permissions are removed",
		components: []string{"namespaced", "secure-metrics"},
		values:     []string{"namespaces={my-app}", "metrics.secure=true"},
	},
	"NamespacedWithoutWebhook": {
		reason:     "a tenant's installation",
		components: []string{"namespaced", "without-webhook"},
		values:     []string{"rbac.scope=namespaces", "namespaces={my-app}", "webhook.enabled=false"},
	},
	"WithoutWebhookNamespaced": {
		reason:     "the order of components does not matter",
		components: []string{"without-webhook", "namespaced"},
		values:     []string{"namespaces={my-app}", "webhook.enabled=false"},
	},
}

// The chart renders the same objects as the manifests. Only the Namespace is missing: Helm creates it.
func TestChartEqualsManifests(t *testing.T) {
	t.Parallel()
	kubectl, helm := tool(t, kubernetesTool(), "kubectl"), tool(t, "helm", "helm")
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests := kustomize(t, kubectl, variant.components...)
			dropEmptyVolumes(t, manifests)
			chart := template(t, helm, variant.values...)
			delete(manifests, "Namespace /pod-reloader")
			for key, want := range manifests {
				have, found := chart[key]
				if assert.True(t, found, "the chart lacks %s (%s)", key, variant.reason) {
					assert.Equal(t, want, have, "%s (%s)", key, variant.reason)
				}
			}
			for key := range chart {
				assert.Contains(t, manifests, key, "the manifests lack what the chart has (%s)", variant.reason)
			}
		})
	}
}

// The chart has the API server call the webhook for the owners and labels of its value referents. The manifests do not know them:
// with this component the webhook is called for every workload, as with --auto-reload-all.
func TestWebhookIsCalledForEveryWorkload(t *testing.T) {
	t.Parallel()
	kubectl := tool(t, kubernetesTool(), "kubectl")
	const webhook = "MutatingWebhookConfiguration /pod-reloader"
	plain, every, all := kustomize(t, kubectl), kustomize(t, kubectl, "every-workload"), kustomize(t, kubectl, "auto-reload-all")
	assert.Equal(t, all[webhook], every[webhook])
	assert.NotEqual(t, plain[webhook], every[webhook])
	for _, rendered := range []objects{plain, every} {
		delete(rendered, webhook)
	}
	assert.Equal(t, plain, every, "nothing else differs")
	assert.NotContains(t, kustomize(t, kubectl, "every-workload", "without-webhook"), webhook)
}

// Labels of ours exclude a workload by the webhook's rules. If the API server did not call the webhook for them, it
// could not restore what a write removes.
func TestWebhookIsAskedAboutExcludedWorkloads(t *testing.T) {
	t.Parallel()
	kubectl, helm := tool(t, kubernetesTool(), "kubectl"), tool(t, "helm", "helm")
	for name, variant := range variants {
		for _, rendered := range []objects{kustomize(t, kubectl, variant.components...), template(t, helm, variant.values...)} {
			for _, webhook := range list(rendered["MutatingWebhookConfiguration /pod-reloader"]["webhooks"]) {
				selector, selected := webhook.(map[string]any)["objectSelector"]
				assert.Equal(t, slices.Contains(variant.components, "object-selector"), selected, name)
				assert.NotContains(t, fmt.Sprint(selector), "pod-reloader.cs.sap.com/", name)
			}
		}
	}
}

// What every variant must have.
func TestManifestsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	kubectl := tool(t, kubernetesTool(), "kubectl")
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered := kustomize(t, kubectl, variant.components...)
			text, err := yaml.Marshal(rendered)
			require.NoError(t, err)
			assert.NotContains(t, string(text), "caBundle:", "applying the manifests again must not empty it")
			for key, object := range rendered {
				for _, rule := range list(object["rules"]) {
					assert.NotContains(t, fmt.Sprint(rule), "*", "%s grants more than is named", key)
				}
			}
		})
	}
}

// A comment explains each permission to those who install pod-reloader.
func TestManifestsGiveAReasonForEachRule(t *testing.T) {
	t.Parallel()
	files := []string{
		"base/clusterrole.yaml", "base/role.yaml",
		"components/secure-metrics/clusterrole.yaml", "components/self-managed-certificates/clusterrole.yaml",
	}
	for _, file := range files {
		rules := 0
		before := ""
		for line := range strings.Lines(read(t, filepath.Join("manifests", file))) {
			if strings.HasPrefix(line, "  - apiGroups:") {
				rules++
				assert.True(t, strings.HasPrefix(strings.TrimSpace(before), "#"), "%s: no reason before %s", file, line)
			}
			before = line
		}
		assert.Positive(t, rules, file)
	}
}

// kubernetesTool is the pin whose kubectl renders: that of the version under test.
func kubernetesTool() string {
	version := os.Getenv("K8S_VERSION")
	if version == "" {
		version = "1.36"
	}
	return "kubernetes-" + version
}

func tool(t *testing.T, name, program string) string {
	t.Helper()
	dir, err := toolchain.Builder{}.Build(t.Context(), name)
	require.NoError(t, err)
	return filepath.Join(dir, program)
}

// kustomize renders the base with components, as the kustomization of a user does.
func kustomize(t *testing.T, kubectl string, components ...string) objects {
	t.Helper()
	directory := filepath.Join(toolchain.RootOf(t), "manifests")
	switch {
	case slices.Contains(components, withCertManager):
		components = slices.DeleteFunc(slices.Clone(components), func(c string) bool { return c == withCertManager })
	case !slices.Contains(components, "without-webhook"):
		components = append(slices.Clone(components), selfManaged)
	}
	if len(components) > 0 {
		paths := make([]string, 0, len(components))
		for _, component := range components {
			paths = append(paths, filepath.Join(directory, "components", component))
		}
		directory = kustomization(t, map[string]any{"resources": []string{directory}, "components": paths})
	}
	out, err := run(t.Context(), kubectl, "kustomize", directory)
	require.NoError(t, err)
	return parse(t, out)
}

// dropEmptyVolumes removes the lists that a patch has emptied, which mean the same as none.
func dropEmptyVolumes(t *testing.T, rendered objects) {
	t.Helper()
	deployment := rendered["Deployment pod-reloader/pod-reloader"]
	pod, _ := field(t, deployment, "spec", "template", "spec").(map[string]any)
	for key, parent := range map[string]map[string]any{"volumes": pod, "volumeMounts": container(t, deployment)} {
		if items, found := parent[key]; found && len(list(items)) == 0 {
			delete(parent, key)
		}
	}
}

func template(t *testing.T, helm string, values ...string) objects {
	t.Helper()
	out, err := run(t.Context(), helm, templateArgs(t, values)...)
	require.NoError(t, err)
	rendered := parse(t, out)
	for key, object := range rendered {
		metadata, _ := object["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		require.Contains(t, labels, "helm.sh/chart", "%s", key)
		// What Helm adds.
		delete(labels, "helm.sh/chart")
		delete(labels, "app.kubernetes.io/managed-by")
	}
	return rendered
}

func templateArgs(t *testing.T, values []string) []string {
	t.Helper()
	args := []string{
		"template", "pod-reloader", filepath.Join(toolchain.RootOf(t), "chart/pod-reloader"), "--namespace", "pod-reloader",
		// Without a cluster, Helm assumes a version that it was linked with.
		"--kube-version", "1.36.0", "--skip-tests",
	}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	return args
}

func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = toolchain.ShortLived()
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, problems.String())
	}
	return out.Bytes(), nil
}

func parse(t *testing.T, text []byte) objects {
	t.Helper()
	rendered := objects{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object))
		if len(object) == 0 {
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		key := fmt.Sprintf("%v %s/%v", object["kind"], namespace, metadata["name"])
		require.NotContains(t, rendered, key, "rendered twice")
		rendered[key] = object
	}
	require.NotEmpty(t, rendered)
	return rendered
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}
