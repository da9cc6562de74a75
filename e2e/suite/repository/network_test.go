package repository

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The values of the NetworkPolicy reach the rule of their port, and no other.
func TestNetworkPolicyOfTheChart(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	policy := func(values ...string) map[string]any {
		t.Helper()
		values = append(values, "networkPolicy.enabled=true")
		spec, _ := template(t, helm, values...)["NetworkPolicy pod-reloader/pod-reloader"]["spec"].(map[string]any)
		require.NotNil(t, spec)
		return spec
	}
	from := func(spec map[string]any) map[string]any {
		t.Helper()
		byPort := map[string]any{}
		for _, rule := range list(spec["ingress"]) {
			ports, _, err := unstructured.NestedSlice(rule.(map[string]any), "ports")
			require.NoError(t, err)
			require.Len(t, ports, 1)
			byPort[ports[0].(map[string]any)["port"].(string)] = rule.(map[string]any)["from"]
		}
		return byPort
	}
	anywhere := []any{map[string]any{"namespaceSelector": map[string]any{}}}

	spec := policy()
	assert.Equal(t, []any{"Ingress"}, spec["policyTypes"], "outgoing connections are not restricted")
	assert.Equal(t, map[string]any{"webhook": nil, "health": nil, "metrics": anywhere}, from(spec))

	spec = policy("networkPolicy.webhookFrom[0].ipBlock.cidr=10.0.0.0/8", "networkPolicy.egress[0].ports[0].port=443")
	assert.Equal(t, []any{"Ingress", "Egress"}, spec["policyTypes"])
	assert.Equal(t, map[string]any{
		"webhook": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8"}}}, "health": nil, "metrics": anywhere,
	}, from(spec))
	assert.Len(t, spec["egress"], 1)

	assert.NotContains(t, from(policy("webhook.enabled=false")), "webhook", "in direct mode there is none")
}

// The flag, the volume and its mount are of one path.
func TestClientCAComponent(t *testing.T) {
	t.Parallel()
	deployment := kustomize(t, tool(t, kubernetesTool(), "kubectl"), "client-ca")["Deployment pod-reloader/pod-reloader"]
	containers, _, err := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	container, _ := containers[0].(map[string]any)
	assert.Contains(t, container["args"], "--webhook-client-ca=/etc/pod-reloader/client-ca/ca.crt")
	assert.Contains(t, container["volumeMounts"], map[string]any{"name": "client-ca", "mountPath": "/etc/pod-reloader/client-ca", "readOnly": true})
	volumes, _, err := unstructured.NestedSlice(deployment, "spec", "template", "spec", "volumes")
	require.NoError(t, err)
	assert.Contains(t, volumes, map[string]any{"name": "client-ca", "configMap": map[string]any{"name": "pod-reloader-client-ca"}})
}

// The policy applies to the account of the release, with its prefix, and knows the pod template of each kind.
func TestGuardFollowsTheValues(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	rendered := template(t, helm, "guard.enabled=true", "annotationPrefix=example.org", "namespaces={kube-system}",
		"reloader.annotations.pause-deployment-time-annotation=example.org/since", "guard.validationActions={Audit}",
		"workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A", "workloadKinds[0].template=spec.update.pods", "workloadKinds[0].resource=as")
	policy, _ := rendered["ValidatingAdmissionPolicy /pod-reloader-guard"]["spec"].(map[string]any)
	texts := map[string]any{}
	for _, field := range []string{"matchConditions", "variables"} {
		for _, entry := range list(policy[field]) {
			named, _ := entry.(map[string]any)
			name, _ := named["name"].(string)
			texts[name] = named["expression"]
		}
	}
	assert.Contains(t, texts["is-pod-reloader"], `"system:serviceaccount:pod-reloader:pod-reloader:"`)
	assert.Contains(t, texts["parts"], `"example.org/config-hash"`)
	assert.NotContains(t, texts["parts"], "cs.sap.com")
	assert.Equal(t, `"example.org/since"`, texts["pausedAt"])
	assert.Contains(t, texts["template"], `variables.resource == "a.io/as" ? variables.after.?spec.?update.?pods.orValue({})`)
	assert.Contains(t, texts["around"], `[variables.after.?spec.?update.orValue({}), variables.before.?spec.?update.orValue({}), dyn(["pods"]), dyn("spec.update")]`)
	for _, entry := range list(policy["validations"]) {
		assert.NotContains(t, entry.(map[string]any)["expression"], "kube-system", "it is in scope")
	}
	binding, _ := rendered["ValidatingAdmissionPolicyBinding /pod-reloader-guard"]["spec"].(map[string]any)
	assert.Equal(t, []any{"Audit"}, binding["validationActions"])
}
