package repository

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// modes are values that one release gets one after the other.
var modes = []struct {
	name   string
	values []string
	// bundle is the caBundle after the upgrade: that which pod-reloader has set, if it stays.
	bundle string
}{
	{name: "default", bundle: ""},
	{name: "another value", values: []string{"replicas=3", "webhook.timeoutSeconds=4"}, bundle: "own"},
	{name: "some namespaces", values: []string{"namespaces={default,kube-public}"}, bundle: "own"},
	{name: "of a tenant", values: []string{"rbac.scope=namespaces", "namespaces={default}", "webhook.enabled=false"}},
	{name: "with everything", values: []string{
		"guard.enabled=true", "flowSchema.enabled=true", "networkPolicy.enabled=true", "metrics.secure=true", "metrics.dashboard.enabled=true",
		"reloader.runCronJobs=true", "reloader.recreateJobs=true", "secrets.enabled=false",
		"workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A", "workloadKinds[0].template=spec.t", "workloadKinds[0].resource=as",
	}},
	{name: "cert-manager", values: []string{"webhook.certificates.mode=cert-manager"}, bundle: "own"},
	{name: "given", values: []string{"webhook.certificates.mode=given", "webhook.certificates.caBundle=" + givenCA}, bundle: givenCA},
	{name: "self-managed again", bundle: ""},
	{name: "without permissions of its own", values: []string{"rbac.create=false", "serviceAccount.create=false", "serviceAccount.name=default"}, bundle: "own"},
}

// givenCA only has to be PEM: no call is made.
const givenCA = "-----BEGIN CERTIFICATE-----\nMIIBejCCASGgAwIBAgIUE4kHX3+CPHMMJE+CK6ZRGJRM174wCgYIKoZIzj0EAwIw\nEjEQMA4GA1UEAwwHZXhhbXBsZTAgFw0yNjExMjIyMzM3NDdaGA8yMTI2MTAyOTIz\nMzc0N1owEjEQMA4GA1UEAwwHZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEH\nA0IABPJcSaF0X66lRLFWGoFCOfzGEc5QaCmI3GFlyi0nSbhtID1NtiY6b5fHp5oO\nQbqJL1dw/ym/ll6g3fRb+vqhQfSjUzBRMB0GA1UdDgQWBBQ0X+8a0cyhwoik2XLt\nFjdgwUvVqzAfBgNVHSMEGDAWgBQ0X+8a0cyhwoik2XLtFjdgwUvVqzAPBgNVHRMB\nAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIBZEzoZjAZ4Mi+TBXw3HV1e/b1v/\nnL/3yLJUT5vy5SIeAiBLgh3v9JW7+wlEVtNCwHPs5TndVjHa8mGh0qbnsvCWlA==\n-----END CERTIFICATE-----\n"

// upgradesAcrossModes upgrades one release from each mode to the next: the API server accepts it, the objects of the mode before are
// gone, and the caBundle that pod-reloader has set stays. In the end, nothing is left.
func upgradesAcrossModes(t *testing.T, kubectl string, cluster *controlplane.ControlPlane) {
	t.Helper()
	api := cluster.Client()
	_, err := run(t.Context(), kubectl, "--kubeconfig", cluster.AdminKubeconfig(), "apply", "-f", filepath.Join(toolchain.RootOf(t), "e2e/suite/docs/testdata/cert-manager.yaml"))
	require.NoError(t, err)
	require.NoError(t, cluster.AwaitServed(t.Context()))
	kinds := map[apischema.GroupVersionKind]bool{}
	for _, mode := range modes {
		helmOn(t, cluster, append([]string{"upgrade", "--install", "modes", filepath.Join(toolchain.RootOf(t), "chart/pod-reloader"), "--namespace", "platform", "--create-namespace", "--reset-values"}, set(mode.values)...)...)
		manifest := parse(t, helmOn(t, cluster, "get", "manifest", "modes", "--namespace", "platform"))
		want := make([]string, 0, len(manifest))
		for key, object := range manifest {
			want = append(want, key)
			kinds[(&unstructured.Unstructured{Object: object}).GroupVersionKind()] = true
		}
		assert.ElementsMatch(t, want, released(t, api, kinds), "%s: what the release consists of", mode.name)
		if bundle, found := bundleOf(t, api); found {
			assert.Equal(t, mode.bundle, bundle, "%s: the caBundle", mode.name)
			setBundle(t, api)
		}
	}
	helmOn(t, cluster, "uninstall", "modes", "--namespace", "platform")
	assert.Empty(t, released(t, api, kinds), "nothing is left")
}

func set(values []string) []string {
	var args []string
	for _, value := range values {
		args = append(args, "--set", value)
	}
	return args
}

func helmOn(t *testing.T, cluster *controlplane.ControlPlane, args ...string) []byte {
	t.Helper()
	out, err := run(t.Context(), tool(t, "helm", "helm"), append(args, "--kubeconfig", cluster.AdminKubeconfig())...)
	require.NoError(t, err)
	return out
}

// released are the objects that have the label of the release.
func released(t *testing.T, api client.Client, kinds map[apischema.GroupVersionKind]bool) []string {
	t.Helper()
	var all []string
	for kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		require.NoError(t, api.List(t.Context(), list, client.MatchingLabels{"app.kubernetes.io/instance": "modes"}))
		for _, item := range list.Items {
			all = append(all, fmt.Sprintf("%s %s/%s", item.GetKind(), item.GetNamespace(), item.GetName()))
		}
	}
	return all
}

func bundleOf(t *testing.T, api client.Client) (bundle string, found bool) {
	t.Helper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if client.IgnoreNotFound(api.Get(t.Context(), types.NamespacedName{Name: "modes"}, configuration)) != nil || configuration.ResourceVersion == "" {
		return "", false
	}
	return string(configuration.Webhooks[0].ClientConfig.CABundle), true
}

// setBundle does what pod-reloader does.
func setBundle(t *testing.T, api client.Client) {
	t.Helper()
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	configuration.Name = "modes"
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"b3du"}]`))
	require.NoError(t, api.Patch(t.Context(), configuration, patch, client.FieldOwner("pod-reloader")))
}

// classifiesRequests checks by the header of a response that the FlowSchemas match the requests of the account, and no others.
func classifiesRequests(t *testing.T, kubectl string, cluster *controlplane.ControlPlane) {
	t.Helper()
	schemas := map[string]types.UID{}
	for key, object := range kustomize(t, kubectl, "flow-schema") {
		if strings.HasPrefix(key, "FlowSchema ") {
			flow := &unstructured.Unstructured{Object: object}
			require.NoError(t, cluster.Client().Create(t.Context(), flow))
			schemas[flow.GetName()] = flow.GetUID()
		}
	}
	require.Len(t, schemas, 2)
	for path, want := range map[string]types.UID{
		"/api/v1/namespaces/default/configmaps/a":                               schemas["pod-reloader"],
		"/apis/apps/v1/deployments":                                             schemas["pod-reloader"],
		"/apis/coordination.k8s.io/v1/namespaces/pod-reloader/leases/a":         schemas["pod-reloader-leader-election"],
		"/apis/coordination.k8s.io/v1/namespaces/default/leases/a":              schemas["pod-reloader"],
		"/apis/apps/v1/namespaces/pod-reloader/deployments/pod-reloader/status": schemas["pod-reloader"],
	} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			assert.Equal(c, string(want), classified(t, cluster, "pod-reloader", path), path)
		}, time.Minute, 50*time.Millisecond)
		for _, other := range schemas {
			assert.NotEqual(t, string(other), classified(t, cluster, "other", path), "another account: %s", path)
		}
	}
}

// classified is the UID of the FlowSchema that a request of an account has got.
func classified(t *testing.T, cluster *controlplane.ControlPlane, account, path string) string {
	t.Helper()
	config, err := cluster.Config(controlplane.ServiceAccount("pod-reloader", account))
	require.NoError(t, err)
	api, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, http.NoBody)
	require.NoError(t, err)
	response, err := api.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.Header.Get("X-Kubernetes-Pf-Flowschema-Uid")
}
