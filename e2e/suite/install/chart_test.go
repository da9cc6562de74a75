package install_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/operator"
	"github.com/pod-reloader/pod-reloader/pkg/certs"
)

// monitoring has the kinds of the Prometheus operator.
var monitoring = operator.Source{
	Pin: "kit/operator/prometheus-operator", Module: "github.com/prometheus-operator/prometheus-operator",
	Paths: []string{
		"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
	},
}

// valueFile is one of the chart's examples of values, chart/pod-reloader/ci.
type valueFile struct {
	// deployment is the name that the values give to the objects.
	deployment string
	// namespace is that of a workload that this installation handles; empty means a new one.
	namespace string
	// direct says that there is no webhook, and nothing for helm test to check.
	direct bool
	// without says that `helm test` has nothing to run: the chart creates no permissions.
	without bool
	// prepare makes what the values take as given, and returns further arguments of Helm.
	prepare func(*testing.T, *world) []string
}

var valueFiles = map[string]valueFile{
	"default-values.yaml":  {deployment: "pod-reloader"},
	"given-values.yaml":    {deployment: "pod-reloader", without: true, prepare: giveCertificateAndAccount},
	"hardened-values.yaml": {deployment: "reload", prepare: givePlatform},
	"tenant-values.yaml":   {deployment: "pod-reloader", namespace: "my-app", direct: true},
}

// TestChartInstallsItsValueFiles installs the chart with each of its value files, on a cluster that has what they refer to. The
// API server shows a client certificate to webhooks, as the hardened values ask for.
func TestChartInstallsItsValueFiles(t *testing.T) {
	t.Parallel()
	w := newChartWorld(t)
	w.kubectl(t, "label", "nodes", "--all", "kubernetes.io/os=linux")
	for _, namespace := range []string{ours.Namespace, "monitoring", "cert-manager", "my-app", "my-other-app"} {
		w.kubectl(t, "create", "namespace", namespace)
	}
	files, err := os.ReadDir(filepath.Join(w.chart(), "ci"))
	require.NoError(t, err)
	require.Len(t, files, len(valueFiles), "each file is installed")
	for _, file := range files {
		values, known := valueFiles[file.Name()]
		require.True(t, known, file.Name())
		t.Run(file.Name(), func(t *testing.T) { installs(t, w, file.Name(), values) })
	}
}

func installs(t *testing.T, w *world, file string, values valueFile) {
	t.Helper()
	args := []string{"--values", filepath.Join(w.chart(), "ci", file)}
	if values.prepare != nil {
		args = append(args, values.prepare(t, w)...)
	}
	before, err := w.clusterScoped(t.Context())
	require.NoError(t, err)
	u := &user{T: t, world: w, namespace: values.namespace, canaries: new(int)}
	if u.namespace == "" {
		u.namespace = w.Namespace(t)
		before.Insert("namespaces/" + u.namespace)
	}
	u.watcher = observe.New(t, w.Admin(), u.namespace)
	w.kubelet.deployments = []client.ObjectKey{{Namespace: ours.Namespace, Name: values.deployment}}

	rendered := w.helm(t, append([]string{"template", "pod-reloader", w.chart(), "--validate", "--skip-tests"}, args...)...)
	_, err = w.KubectlInput(patiently(t), rendered, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
	require.NoError(t, err, "the API server takes each object")

	t.Cleanup(func() { // of a test that fails, so that the next one can install
		_, _ = w.runHelm(context.WithoutCancel(t.Context()), t.TempDir(), "uninstall", "pod-reloader", "--ignore-not-found", "--wait")
	})
	w.helm(t, append([]string{"install", "pod-reloader", w.chart(), "--wait"}, args...)...)
	require.NoError(t, w.kubelet.follow(patiently(t)), "the replicas become ready")
	if !values.direct {
		require.NoError(t, w.awaitWebhook(patiently(t)))
	}
	web := u.creates("web")
	u.awaitKnown(web)
	u.configures("web", "good evening")
	u.awaitChanges(web, 1, "the content changed")
	u.settled()
	u.requireChanges(web, 1, "once")
	if !values.direct && !values.without {
		w.helmTest(t, values.deployment)
	}

	w.helm(t, "uninstall", "pod-reloader", "--wait")
	require.NoError(t, w.kubelet.follow(patiently(t)))
	require.Empty(t, w.kubelet.running(), "nothing of pod-reloader runs")
	u.requireNothingLeft(before)
	u.configures("web", "good night")
	u.labels(web, "after-pod-reloader-has-gone")
	u.seen()
	u.requireChanges(web, 1, "nothing restarts any more")
}

// newChartWorld is a world with the kinds of the Prometheus operator, whose API server shows a client certificate to webhooks.
func newChartWorld(t *testing.T) *world {
	t.Helper()
	n, err := newNetwork()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.close()) })
	o := options(n)
	o.WebhookClient = "kube-apiserver"
	w, err := furnish(t.Context(), controlplane.New(t, o), n)
	require.NoError(t, err)
	t.Cleanup(func() { w.explain(t) })
	require.NoError(t, monitoring.Apply(t.Context(), w.ControlPlane))
	return w
}

// givenSecret has the certificate of giveCertificate.
const givenSecret = "our-certificate"

// giveCertificate makes a certificate, and returns its CA.
func (w *world) giveCertificate(t *testing.T) []byte {
	t.Helper()
	made, err := certs.Policy{Names: []string{installation.ServiceName}, Lifetime: time.Hour, CALifetime: 2 * time.Hour}.
		Decide(certs.Input{Now: time.Now()}, rand.Reader)
	require.NoError(t, err)
	require.NoError(t, w.Client().Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ours.Namespace, Name: givenSecret}, Type: corev1.SecretTypeTLS, Data: made.Data,
	}))
	return made.Data["ca.crt"]
}

// giveCertificateAndAccount makes a certificate, and an account with the permissions of the documentation.
func giveCertificateAndAccount(t *testing.T, w *world) []string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, w.giveCertificate(t), 0o600))
	w.kubectl(t, "create", "serviceaccount", "ours", "-n", ours.Namespace)
	permissions := w.helm(t, "template", "pod-reloader", w.chart(), "--set", "serviceAccount.create=false,serviceAccount.name=ours",
		"--set", "webhook.certificates.mode=given,webhook.annotations.from=elsewhere",
		"--validate", "--show-only", "templates/role.yaml", "--show-only", "templates/clusterrole.yaml")
	_, err := w.KubectlInput(patiently(t), permissions, "apply", "-f", "-")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := w.KubectlInput(context.WithoutCancel(t.Context()), permissions, "delete", "-f", "-")
		assert.NoError(t, err)
	})
	// The nodes that KWOK plays have no addresses, so that pods on their network are no endpoints of the Service.
	return []string{"--set-file", "webhook.certificates.caBundle=" + ca, "--set", "hostNetwork=false"}
}

// givePlatform makes what a platform team has: an issuer for all namespaces, the CA of the API server's client certificate, a Secret
// with environment variables, and a kind of workload.
func givePlatform(t *testing.T, w *world) []string {
	t.Helper()
	fleets := controlplane.CustomResource{Group: "example.com", Kind: "Fleet", Plural: "fleets", WithoutStatus: true}
	_, err := w.KubectlInput(patiently(t), `
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: platform-root}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: platform-ca, namespace: cert-manager}
spec:
  isCA: true
  commonName: platform
  secretName: platform-ca
  issuerRef: {name: platform-root, kind: ClusterIssuer}
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: platform-ca}
spec: {ca: {secretName: platform-ca}}
`+fleets.Definition(), "apply", "-f", "-")
	require.NoError(t, err)
	w.kubectl(t, "create", "configmap", "webhook-callers", "-n", ours.Namespace, "--from-file", "ca.crt="+w.CAFile())
	w.kubectl(t, "create", "secret", "generic", "alerts", "-n", ours.Namespace, "--from-literal", "UNUSED=1")
	return nil
}

// helmTest runs `helm test`. KWOK runs nothing, so that the pod of the test is run here, with its account.
func (w *world) helmTest(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ran := make(chan error, 1)
	go func() {
		ran <- w.kubelet.complete(ctx, client.ObjectKey{Namespace: ours.Namespace, Name: name + "-test"})
	}()
	said := w.helm(t, "test", "pod-reloader")
	require.NoError(t, <-ran)
	assert.Contains(t, said, "Succeeded")
}

// complete waits for a pod, runs its container to the end, and reports that in the status of the pod.
func (k *kubelet) complete(ctx context.Context, of client.ObjectKey) error {
	pod := &corev1.Pod{}
	err := await(ctx, "pod "+of.String(), func(ctx context.Context) error {
		if err := k.cp.Client().Get(ctx, of, pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(k.dir, "test-")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := k.cp.WriteKubeconfig(kubeconfig, controlplane.ServiceAccount(of.Namespace, pod.Spec.ServiceAccountName)); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, k.executable, pod.Spec.Containers[0].Args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	phase := corev1.PodSucceeded
	said, err := command.CombinedOutput()
	if err != nil {
		phase, err = corev1.PodFailed, fmt.Errorf("the pod of the test: %w: %s", err, said)
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))
	return errors.Join(err, k.cp.Client().Status().Patch(ctx, pod, patch))
}
