package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// identities are names and namespaces that an overlay gives to the installation.
var identities = map[string]struct {
	reason, namespace, prefix, suffix string
	name, inNamespace                 string
}{
	"Default":   {reason: "without an overlay", name: "pod-reloader", inNamespace: "pod-reloader"},
	"Namespace": {reason: "a platform team's own", namespace: "platform", name: "pod-reloader", inNamespace: "platform"},
	"Prefix":    {reason: "a naming convention", prefix: "team-", name: "team-pod-reloader", inNamespace: "pod-reloader"},
	"Suffix":    {reason: "a convention for regions", suffix: "-eu", name: "pod-reloader-eu", inNamespace: "pod-reloader"},
	"All":       {reason: "none of them undoes another", namespace: "platform", prefix: "team-", suffix: "-eu", name: "team-pod-reloader-eu", inNamespace: "platform"},
	"Both":      {reason: "one must not undo the other", namespace: "platform", prefix: "team-", name: "team-pod-reloader", inNamespace: "platform"},
}

// Each text that contains the name or the namespace of the installation follows an overlay. One that does not would leave
// the webhook without a trusted certificate: every write would pass it, and the loop would work in direct mode.
func TestOverlayRenamesTheWholeInstallation(t *testing.T) {
	t.Parallel()
	kubectl := tool(t, kubernetesTool(), "kubectl")
	for name, identity := range identities {
		for _, components := range [][]string{nil, {"namespaced"}, {"namespaced", "without-webhook"}, {"recreate-jobs", "secure-metrics"}, {"guard", "network-policy", "flow-schema"}, {"self-managed-certificates", "guard"}} {
			t.Run(fmt.Sprint(name, components), func(t *testing.T) {
				t.Parallel()
				inner := kustomization(t, map[string]any{
					"resources": []string{filepath.Join(toolchain.RootOf(t), "manifests")}, "namespace": identity.namespace, "namePrefix": identity.prefix, "nameSuffix": identity.suffix,
				})
				paths := make([]string, 0, len(components))
				for _, component := range components {
					paths = append(paths, filepath.Join(toolchain.RootOf(t), "manifests/components", component))
				}
				out, err := run(t.Context(), kubectl, "kustomize",
					kustomization(t, map[string]any{"resources": []string{inner}, "components": paths}))
				require.NoError(t, err)
				rendered := parse(t, out)
				assertOneInstallation(t, rendered, identity.name, identity.inNamespace)
				for key, object := range rendered {
					text, err := yaml.Marshal(object)
					require.NoError(t, err)
					assert.NotContains(t, string(text), "$(", "%s: %s", key, identity.reason)
				}
			})
		}
	}
}

// The chart's names follow the release, its namespace and the overrides in the same way.
func TestChartRenamesTheWholeInstallation(t *testing.T) {
	t.Parallel()
	for name, identity := range identities {
		for _, values := range [][]string{nil, {"namespaces={my-app}"}, {"namespaces={my-app}", "webhook.enabled=false"}, {"metrics.secure=true"}, {"guard.enabled=true", "networkPolicy.enabled=true", "flowSchema.enabled=true"}, {"webhook.certificates.mode=cert-manager"}} {
			t.Run(fmt.Sprint(name, values), func(t *testing.T) {
				t.Parallel()
				args := templateArgs(t, append(slices.Clone(values), "fullnameOverride="+identity.name))
				args[slices.Index(args, "--namespace")+1] = identity.inNamespace
				out, err := run(t.Context(), tool(t, "helm", "helm"), args...)
				require.NoError(t, err)
				assertOneInstallation(t, parse(t, out), identity.name, identity.inNamespace)
			})
		}
	}
}

// assertOneInstallation checks that the objects name each other.
func assertOneInstallation(t *testing.T, rendered objects, name, namespace string) {
	t.Helper()
	own := namespace + "/" + name
	deployment := rendered["Deployment "+own]
	require.NotNil(t, deployment, "there is no Deployment %s", own)
	assert.Contains(t, rendered, "ServiceAccount "+own)
	assert.Equal(t, name, field(t, deployment, "spec", "template", "spec", "serviceAccountName"))
	assert.Contains(t, arguments(t, deployment), "--installation-name="+name)
	assert.Contains(t, fmt.Sprint(list(rendered["Role "+own]["rules"])), "resourceNames:["+name+"] resources:[leases]")
	for key, object := range rendered {
		if !strings.Contains(key, "RoleBinding ") {
			continue
		}
		assert.Equal(t, fmt.Sprintf("[map[kind:ServiceAccount name:%s namespace:%s]]", name, namespace),
			fmt.Sprint(list(object["subjects"])), key)
		role, _ := field(t, object, "roleRef", "kind").(string)
		scope, _, _ := strings.Cut(strings.TrimPrefix(key, object["kind"].(string)+" "), "/")
		assert.Contains(t, rendered, fmt.Sprintf("%s %s/%v", role, scope, field(t, object, "roleRef", "name")), key)
	}
	for key, object := range rendered {
		switch object["kind"] {
		case "ValidatingAdmissionPolicy":
			assert.Contains(t, fmt.Sprint(field(t, object, "spec", "matchConditions")), `"system:serviceaccount:`+namespace+":"+name+`:"`)
			validations := fmt.Sprint(field(t, object, "spec", "validations"))
			assert.Contains(t, validations, `request.name == "`+name+`"`, key)
			assert.Contains(t, validations, `request.name == "`+name+`-certificates"`, key)
		case "FlowSchema":
			assert.Contains(t, fmt.Sprint(field(t, object, "spec", "rules")), "serviceAccount:map[name:"+name+" namespace:"+namespace+"]", key)
		case "NetworkPolicy":
			assert.Equal(t, namespace, field(t, object, "metadata", "namespace"), key)
		}
	}
	if webhook, found := rendered["MutatingWebhookConfiguration /"+name]; found {
		assertCertificate(t, rendered, webhook, name, namespace)
	} else {
		assert.NotContains(t, rendered, "Service "+own)
	}
}

// assertCertificate checks that the API server reaches the Service, trusts the CA, and finds its own name in the
// certificate that the pods serve.
func assertCertificate(t *testing.T, rendered objects, webhook map[string]any, name, namespace string) {
	t.Helper()
	own := namespace + "/" + name
	assert.Contains(t, fmt.Sprint(list(webhook["webhooks"])), fmt.Sprintf("service:map[name:%s namespace:%s path:/mutate port:443]", name, namespace))
	assert.Contains(t, rendered, "Service "+own)
	if slices.Contains(arguments(t, rendered["Deployment "+own]), any("--certificate-mode=self-managed")) {
		assertSelfManaged(t, rendered, webhook, name, namespace)
		return
	}
	injected, _ := field(t, webhook, "metadata", "annotations", "cert-manager.io/inject-ca-from").(string)
	leaf := rendered["Certificate "+injected]
	require.NotNil(t, leaf, "no Certificate %s", injected)
	host := name + "." + namespace + ".svc"
	assert.Equal(t, []any{host, host + ".cluster.local"}, field(t, leaf, "spec", "dnsNames"))
	assert.Contains(t, fmt.Sprint(rendered["Deployment "+own]), fmt.Sprintf("secret:map[secretName:%v]", field(t, leaf, "spec", "secretName")))
	issuer := rendered[fmt.Sprintf("Issuer %s/%v", namespace, field(t, leaf, "spec", "issuerRef", "name"))]
	require.NotNil(t, issuer, "the leaf has no issuer")
	ca := certificateOf(t, rendered, field(t, issuer, "spec", "ca", "secretName"))
	assert.Contains(t, rendered, fmt.Sprintf("Issuer %s/%v", namespace, field(t, ca, "spec", "issuerRef", "name")))
}

// certificateOf is the Certificate that is issued into a Secret.
func certificateOf(t *testing.T, rendered objects, secret any) map[string]any {
	t.Helper()
	for _, object := range rendered {
		if object["kind"] == "Certificate" && field(t, object, "spec", "secretName") == secret {
			return object
		}
	}
	require.Fail(t, "no Certificate", "%v", secret)
	return nil
}

// assertSelfManaged checks that the permissions are on the webhook configuration and the Secret that the program takes by its
// installation's name, and that no other program is expected to make a certificate.
func assertSelfManaged(t *testing.T, rendered objects, webhook map[string]any, name, namespace string) {
	t.Helper()
	metadata, _ := webhook["metadata"].(map[string]any)
	assert.NotContains(t, fmt.Sprint(metadata["annotations"]), "inject-ca-from")
	own := namespace + "/" + name
	assert.Contains(t, fmt.Sprint(list(rendered["Role "+own]["rules"])), "resourceNames:["+name+"-certificates] resources:[secrets]")
	var granted string
	for key, object := range rendered {
		assert.NotContains(t, key, "Certificate ")
		if object["kind"] == "ClusterRole" && strings.Contains(key, "-certificates") {
			granted = fmt.Sprint(list(object["rules"]))
		}
	}
	assert.Contains(t, granted, "resourceNames:["+name+"] resources:[mutatingwebhookconfigurations]")
	spec, _ := field(t, rendered["Deployment "+own], "spec", "template", "spec").(map[string]any)
	assert.Empty(t, spec["volumes"], "the pods would wait for a Secret that no program makes")
}

// container is the one of a Deployment.
func container(t *testing.T, deployment map[string]any) map[string]any {
	t.Helper()
	containers := list(field(t, deployment, "spec", "template", "spec", "containers"))
	require.Len(t, containers, 1)
	only, _ := containers[0].(map[string]any)
	return only
}

func arguments(t *testing.T, deployment map[string]any) []any {
	t.Helper()
	return list(container(t, deployment)["args"])
}

func field(t *testing.T, object map[string]any, path ...string) any {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	require.NoError(t, err)
	require.True(t, found, "%v has no %s", object["metadata"], strings.Join(path, "."))
	return value
}

// kustomization writes one with absolute paths in resources and components, as relative ones: kustomize takes no others.
func kustomization(t *testing.T, content map[string]any) string {
	t.Helper()
	directory, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, key := range []string{"resources", "components"} {
		paths, _ := content[key].([]string)
		for i, path := range paths {
			paths[i], err = filepath.Rel(directory, path)
			require.NoError(t, err)
		}
	}
	text, err := yaml.Marshal(content)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(directory, "kustomization.yaml"), text, 0o600))
	return directory
}
