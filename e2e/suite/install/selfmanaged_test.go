package install_test

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/pkg/certs"
)

// certificatesSecret is the Secret of self-managed certificates.
const certificatesSecret = "pod-reloader-certificates"

// leastCalls is how many calls of the webhook a rotation under load must have had, so that the absence of failures is a result.
const leastCalls = 200

// TestSelfManagedCertificates is not parallel: it replaces the installation by one that needs no cert-manager, and puts the
// default one back.
func TestSelfManagedCertificates(t *testing.T) {
	u := newUser(t, shared)
	u.leave()
	dir := selfManaged(t, shared)
	defer func() {
		u.kubectl("delete", "-k", dir, "--ignore-not-found")
		require.NoError(t, shared.kubelet.follow(patiently(t)))
		_, err := shared.install(patiently(t))
		require.NoError(t, err, "the default installation is back")
	}()
	if !t.Run("fresh installation", func(t *testing.T) { freshInstallation(u.in(t), dir) }) {
		return
	}
	t.Run("rotation under load", func(t *testing.T) { rotationUnderLoad(u.in(t)) })
	t.Run("caBundle emptied", func(t *testing.T) { emptiedBundle(u.in(t)) })
	t.Run("expired, and both replicas start at once", func(t *testing.T) { expiredWhileDown(u.in(t)) })
	t.Run("applied again", func(t *testing.T) { appliedAgain(u.in(t), dir) })
}

// selfManaged is a kustomization as the documentation says, with a failure policy that shows each call that fails, and
// lifetimes that shorten the waits of a rotation to 3 and 12 seconds.
func selfManaged(t *testing.T, w *world) string {
	t.Helper()
	return strict(t, w, []string{"self-managed-certificates", "guard"}, map[string]any{
		"target": map[string]any{"kind": "Deployment", "name": ours.Name}, "patch": `[
			{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--certificate-lifetime=2m"},
			{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--certificate-ca-lifetime=30m"}]`,
	})
}

// strict is a kustomization with components, and a failure policy that shows each call that fails. Its replicas serve for long enough
// after SIGTERM that an API server which stalls learns in time that their connections end; others stop faster here, see program.
func strict(t *testing.T, w *world, components []string, patches ...map[string]any) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	manifests, err := filepath.Rel(dir, w.manifests)
	require.NoError(t, err)
	paths := make([]string, 0, len(components))
	for _, component := range components {
		paths = append(paths, filepath.Join(manifests, "components", component))
	}
	kustomization, err := yaml.Marshal(map[string]any{
		"resources": []string{manifests}, "components": paths,
		"patches": append(patches, map[string]any{
			"target": map[string]any{"kind": "Deployment", "name": ours.Name},
			"patch":  `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--shutdown-grace-period=5s"}]`,
		}, map[string]any{
			"target": map[string]any{"kind": "MutatingWebhookConfiguration", "name": ours.Name}, "patch": `[
				{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"},
				{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":30}]`,
		}),
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), kustomization, 0o600))
	return dir
}

func freshInstallation(u *user, dir string) {
	w, ctx := u.world, patiently(u.T)
	_, err := w.Kubectl(ctx, "apply", "-k", dir, "--warnings-as-errors")
	require.NoError(u, err)
	require.NoError(u, w.kubelet.follow(ctx), "the replicas become ready without cert-manager")
	require.NoError(u, w.awaitWebhook(ctx))
	u.requireOneCA()
	_, err = w.certManagers(ctx, "Certificate", leafName)
	require.True(u, client.IgnoreNotFound(err) == nil && err != nil, "there is no Certificate: %v", err)
}

// requireOneCA requires that both replicas serve the certificate of the Secret, and that its CA is the only one trusted.
func (u *user) requireOneCA() {
	u.Helper()
	require.NoError(u, await(patiently(u.T), "one CA and one certificate", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := u.world.Client().Get(ctx, client.ObjectKey{Namespace: ours.Namespace, Name: certificatesSecret}, secret); err != nil {
			return err
		}
		data := certs.Data(secret.Data)
		leaf := data.Leaf()
		if leaf == nil || data.CA() == nil || data["old-ca.crt"] != nil || data["next-ca.crt"] != nil {
			return errors.New("the Secret is not complete, or a rotation is under way")
		}
		registration, err := u.world.registration(ctx)
		if err != nil {
			return err
		}
		if all := certs.InAll([][]byte{registration.Webhooks[0].ClientConfig.CABundle}); len(all) != 1 || !all[0].Equal(data.CA()) {
			return fmt.Errorf("%d CAs are trusted", len(all))
		}
		for _, c := range u.world.kubelet.running() {
			if now, err := served(ctx, c); err != nil || !now.Equal(leaf.Leaf) {
				return fmt.Errorf("%s serves another certificate (%w)", c.Name(), err)
			}
		}
		return nil
	}))
	require.Len(u, u.world.kubelet.running(), 2)
}

func rotationUnderLoad(u *user) {
	w := u.world
	processes := map[string]int{}
	for _, c := range w.kubelet.running() {
		processes[c.Name()] = c.PID()
	}
	l := startLoad(u)
	defer l.stop()

	for range 2 {
		before := w.secret(u.T, certificatesSecret)
		u.removeFromSecret("tls.crt")
		u.awaitOther(before, "tls.crt")
		assert.Equal(u, before.Data["ca.crt"], w.secret(u.T, certificatesSecret).Data["ca.crt"], "the CA is the same")
	}
	for range 2 {
		before := w.secret(u.T, certificatesSecret)
		u.removeFromSecret("ca.key")
		u.awaitOther(before, "ca.crt")
		u.requireOneCA()
	}
	before := w.secret(u.T, certificatesSecret)
	require.NoError(u, w.Client().Delete(u.Context(), before.DeepCopy()))
	u.requireOneCA()
	corrupt := w.secret(u.T, certificatesSecret)
	assert.Equal(u, before.Data["ca.crt"], corrupt.Data["ca.crt"], "what was deleted is restored")
	for key := range corrupt.Data {
		corrupt.Data[key] = []byte("corrupt")
	}
	corrupt.SetResourceVersion("") // whatever a replica has written meanwhile
	require.NoError(u, w.Client().Update(u.Context(), corrupt))
	u.requireOneCA()

	require.NoError(u, await(patiently(u.T), "enough calls", func(context.Context) error {
		if n := l.calls.Load(); n < leastCalls {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	}))
	l.stop()
	u.Logf("%d calls and %d handshakes during the rotations", l.calls.Load(), l.handshakes.Load())
	assert.Empty(u, l.failures, "no call failed, and every handshake was trusted")
	for _, c := range w.kubelet.running() {
		assert.Equal(u, processes[c.Name()], c.PID(), "%s took over every certificate without a restart", c.Name())
	}
	require.True(u, u.stampedAnew(), "also on a new connection of the API server")
}

// removeFromSecret asks for a new certificate, as the documentation says.
func (u *user) removeFromSecret(key string) {
	u.Helper()
	u.kubectl("patch", "secret", certificatesSecret, "-n", ours.Namespace, "--type", "json",
		"-p", fmt.Sprintf(`[{"op":"remove","path":"/data/%s"}]`, key))
}

// awaitOther waits until the Secret has another certificate.
func (u *user) awaitOther(before *corev1.Secret, key string) {
	u.Helper()
	require.NoError(u, await(patiently(u.T), "another "+key, func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := u.world.Client().Get(ctx, client.ObjectKeyFromObject(before), secret); err != nil {
			return err
		}
		if now := string(secret.Data[key]); now == "" || now == string(before.Data[key]) {
			return errors.New("it is the same, or missing")
		}
		return nil
	}))
}

// callPause is the pause of a caller between two calls. Without one, the callers take the processor time that the rotation needs.
const callPause = 20 * time.Millisecond

// load calls the webhook, and makes connections to every replica, all the time.
type load struct {
	calls, handshakes atomic.Int64
	ctx               context.Context
	cancel            context.CancelFunc
	running           sync.WaitGroup

	mutex    sync.Mutex
	failures []string
}

func startLoad(u *user) *load {
	l := startCalls(u)
	l.repeat(&l.handshakes, func(ctx context.Context) error { return trustedEverywhere(ctx, u.world) })
	return l
}

// startCalls calls the webhook only.
func startCalls(u *user) *load {
	l := &load{}
	l.ctx, l.cancel = context.WithCancel(u.Context())
	for range 2 {
		l.repeat(&l.calls, func(ctx context.Context) error {
			return u.world.Client().Create(ctx, workload("default", "probe", "kube-root-ca.crt"), client.DryRunAll)
		})
	}
	return l
}

func (l *load) repeat(count *atomic.Int64, try func(context.Context) error) {
	l.running.Go(func() {
		for l.ctx.Err() == nil {
			if err := try(l.ctx); err != nil && l.ctx.Err() == nil {
				l.mutex.Lock()
				l.failures = append(l.failures, time.Now().Format(time.TimeOnly)+" "+err.Error())
				l.mutex.Unlock()
			}
			count.Add(1)
			select {
			case <-l.ctx.Done():
			case <-time.After(callPause):
			}
		}
	})
}

// failed returns the failures since the last time.
func (l *load) failed() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	failures := l.failures
	l.failures = nil
	return failures
}

// awaitMore waits until the webhook was called often since now.
func (l *load) awaitMore(ctx context.Context, t *testing.T) {
	t.Helper()
	enough := l.calls.Load() + leastCalls
	require.NoError(t, await(ctx, "enough calls", func(context.Context) error {
		if n := l.calls.Load(); n < enough {
			return fmt.Errorf("%d of %d", n, enough)
		}
		return nil
	}))
}

func (l *load) stop() {
	l.cancel()
	l.running.Wait()
}

// trustedEverywhere returns an error if an API server with this webhook configuration would not trust a replica: neither with
// that from before it has connected, nor with that from after it. On a machine that stalls, a CA may come or go in between.
func trustedEverywhere(ctx context.Context, w *world) error {
	for _, c := range w.kubelet.running() {
		before, err := w.trusted(ctx)
		if err != nil {
			return err
		}
		now, err := served(ctx, c)
		if err != nil {
			return err
		}
		if _, err = now.Verify(x509.VerifyOptions{DNSName: installation.ServiceName, Roots: before}); err == nil {
			continue
		}
		after, failure := w.trusted(ctx)
		if failure != nil {
			return failure
		}
		if _, failure := now.Verify(x509.VerifyOptions{DNSName: installation.ServiceName, Roots: after}); failure != nil {
			return fmt.Errorf("%s: %w", c.Name(), errors.Join(err, failure))
		}
	}
	return nil
}

// trusted are the CAs of the webhook configuration.
func (w *world) trusted(ctx context.Context) (*x509.CertPool, error) {
	registration, err := w.registration(ctx)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(registration.Webhooks[0].ClientConfig.CABundle)
	return roots, nil
}

func emptiedBundle(u *user) {
	registration := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ours.Name}}
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`))
	require.NoError(u, u.world.Client().Patch(u.Context(), registration, patch))
	u.requireOneCA()
	require.NoError(u, u.world.awaitWebhook(patiently(u.T)))
}

// expiredWhileDown starts both replicas at once, on a Secret that has expired.
func expiredWhileDown(u *user) {
	w := u.world
	u.kubectl("scale", "deployment", ours.Name, "-n", ours.Namespace, "--replicas", "0")
	require.NoError(u, w.kubelet.follow(patiently(u.T)))
	expired, err := certs.Policy{Names: []string{installation.ServiceName}, Lifetime: time.Minute, CALifetime: 3 * time.Minute}.
		Decide(certs.Input{Now: time.Now().Add(-time.Hour)}, rand.Reader)
	require.NoError(u, err)
	secret := w.secret(u.T, certificatesSecret)
	secret.Data = expired.Data
	require.NoError(u, w.Client().Update(u.Context(), secret))

	u.kubectl("scale", "deployment", ours.Name, "-n", ours.Namespace, "--replicas", "2")
	require.NoError(u, w.kubelet.follow(patiently(u.T)), "both become ready")
	require.NoError(u, w.awaitWebhook(patiently(u.T)))
	u.requireOneCA()
	block, _ := pem.Decode(w.secret(u.T, certificatesSecret).Data["ca.crt"])
	ca, err := x509.ParseCertificate(block.Bytes)
	require.NoError(u, err)
	assert.True(u, ca.NotAfter.After(time.Now()), "the CA of the Secret expired at %s", ca.NotAfter)
	for _, c := range w.kubelet.running() {
		metrics, err := c.Metrics(u.Context())
		require.NoError(u, err)
		assert.InDelta(u, ca.NotAfter.Unix(), metrics.Sum("pod_reloader_certificate_authority_expiry_timestamp_seconds"), 0)
		assert.InDelta(u, 1, metrics.Sum("pod_reloader_certificate_trusted"), 0)
	}
}

// appliedAgain is what GitOps tools do.
func appliedAgain(u *user, dir string) {
	ctx := patiently(u.T)
	before, err := u.world.registration(ctx)
	require.NoError(u, err)
	require.NotEmpty(u, before.Webhooks[0].ClientConfig.CABundle)
	for _, args := range [][]string{{"apply", "-k", dir}, {"apply", "-k", dir, "--server-side", "--force-conflicts"}} {
		_, err = u.world.Kubectl(ctx, args...)
		require.NoError(u, err)
		after, err := u.world.registration(ctx)
		require.NoError(u, err)
		assert.Equal(u, string(before.Webhooks[0].ClientConfig.CABundle), string(after.Webhooks[0].ClientConfig.CABundle),
			"%v takes nothing away", args)
	}
}
