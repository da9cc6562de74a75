package install_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
)

// TestHelm4 installs the chart with Helm 4, which applies on the server. An upgrade then changes no field that another tool has set to
// another value, unless it has --force-conflicts, as docs/upgrading.md says.
func TestHelm4(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.helm4(t, "install", "--create-namespace", "--set", "webhook.failurePolicy=Fail", "--wait"))
	w.requireWebhook(t)

	w.kubectl(t, "delete", "mutatingwebhookconfiguration", ours.Name)
	w.kubectl(t, "scale", "deployment", ours.Name, "-n", ours.Namespace, "--replicas", "0")
	require.NoError(t, w.kubelet.follow(patiently(t)))
	require.Empty(t, w.kubelet.running(), "nothing of pod-reloader runs")
	require.NoError(t, w.helm4(t, "upgrade", "--wait"), "by a Scale with 0 replicas, kubectl owns no field")
	w.requireWebhook(t)

	w.kubectl(t, "scale", "deployment", ours.Name, "-n", ours.Namespace, "--replicas", "3")
	require.ErrorContains(t, w.helm4(t, "upgrade"), `conflict with "kubectl"`)
	require.NoError(t, w.helm4(t, "upgrade", "--force-conflicts", "--wait"))
	w.requireWebhook(t)

	w.kubectl(t, "delete", "mutatingwebhookconfiguration", ours.Name)
	w.kubectl(t, "patch", "deployment", ours.Name, "-n", ours.Namespace, "--type", "merge", "-p", `{"spec":{"replicas":0}}`)
	require.ErrorContains(t, w.helm4(t, "upgrade"), `conflict with "kubectl-patch"`)
	_, err := w.registration(t.Context())
	require.NoError(t, err, "the webhook configuration is there, without a replica")
	require.NoError(t, w.helm4(t, "upgrade", "--force-conflicts", "--wait"))
	w.requireWebhook(t)

	bundle := string(append(w.giveCertificate(t), w.secret(t, certificatesSecret).Data["ca.crt"]...))
	given := []string{
		"--set", "webhook.certificates.mode=given,webhook.certificates.existingSecret=" + givenSecret,
		"--set-string", "webhook.certificates.caBundle=" + bundle,
	}
	require.ErrorContains(t, w.helm4(t, "upgrade", given...), `conflict with "pod-reloader"`)
	deployment := &appsv1.Deployment{}
	require.NoError(t, w.Client().Get(t.Context(), ours, deployment))
	require.Contains(t, fmt.Sprint(deployment.Spec.Template.Spec.Volumes), givenSecret, "Helm changes the other objects")
	require.NoError(t, w.helm4(t, "upgrade", append(given, "--force-conflicts")...))
	w.requireWebhook(t)
	w.requireServedAndTrusted(t, givenSecret)
}

// helm4 runs Helm 4 for the release of the chart.
func (w *world) helm4(t *testing.T, command string, args ...string) error {
	t.Helper()
	args = append([]string{command, "pod-reloader", w.chart()}, args...)
	if command == "upgrade" {
		args = append(args, "--reset-then-reuse-values")
	}
	_, err := w.runPinnedHelm(patiently(t), "helm4", t.TempDir(), args...)
	return err
}

// requireWebhook runs the two pods of the Deployment, and requires that the API server calls them.
func (w *world) requireWebhook(t *testing.T) {
	t.Helper()
	require.NoError(t, w.kubelet.follow(patiently(t)), "the replicas become ready")
	require.Len(t, w.kubelet.running(), 2)
	require.NoError(t, w.awaitWebhook(patiently(t)))
}
