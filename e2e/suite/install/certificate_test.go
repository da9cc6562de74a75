package install_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

const (
	caName     = "pod-reloader-ca"
	leafName   = "pod-reloader"
	leafSecret = "pod-reloader-tls"
)

func TestCertificateChain(t *testing.T) {
	t.Parallel()
	for _, object := range [][2]string{
		{"Issuer", "pod-reloader-selfsigned"}, {"Certificate", caName}, {"Issuer", "pod-reloader-ca"}, {"Certificate", leafName},
	} {
		require.NoError(t, shared.awaitReady(patiently(t), object[0], object[1]))
	}

	secret := shared.secret(t, leafSecret)
	assert.Equal(t, corev1.SecretTypeTLS, secret.Type)
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	require.NoError(t, err, "the key belongs to the certificate")
	assert.Equal(t, shared.secret(t, caName).Data[corev1.TLSCertKey], secret.Data["ca.crt"], "ca.crt is the CA that signed")

	roots := pool(t, secret.Data["ca.crt"])
	for _, name := range []string{installation.ServiceName, installation.ServiceName + ".cluster.local"} {
		_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: x509.NewCertPool()})
		assert.NoError(t, err, "what the pods serve is to be trusted as %s", name)
	}
	assert.False(t, pair.Leaf.IsCA, "a stolen serving certificate must not make others")
	life := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
	assert.Equal(t, 90*24*time.Hour, life.Round(time.Minute), "as the manifest says")
}

func TestWebhookByItsService(t *testing.T) {
	t.Parallel()
	registration, err := shared.registration(t.Context())
	require.NoError(t, err)
	config := registration.Webhooks[0].ClientConfig
	require.Nil(t, config.URL, "nothing is replaced in the manifests")
	require.NotNil(t, config.Service)

	u := newUser(t, shared)
	var web observe.Workload
	require.True(t, u.untilStamped(func(n int) bool {
		web = u.creates(fmt.Sprintf("web-%d", n))
		u.seen()
		annotations, _, _ := unstructured.NestedStringMap(u.watcher.Object(web).Object, "spec", "template", "metadata", "annotations")
		return annotations[configHash] != ""
	}), "created with a stamp, so the webhook was called and its certificate trusted")
	assert.Positive(t, shared.network.connections(ours), "the API server reached the webhook by the address of its Service")

	u.configures(web.Name, "good morning")
	u.awaitChanges(web, 1, "a change of the ConfigMap restarts the pods")
	u.settled()
	u.requireChanges(web, 1, "once")
}

// TestCABundle is not parallel: it applies a variant of the manifests and then them again.
func TestCABundle(t *testing.T) {
	ctx := patiently(t)
	ca := shared.secret(t, leafSecret).Data["ca.crt"]
	before, err := shared.registration(ctx)
	require.NoError(t, err)
	require.Equal(t, string(ca), string(before.Webhooks[0].ClientConfig.CABundle), "the CA injector fills in the CA of the certificate")

	_, err = shared.Kubectl(ctx, "apply", "-k", shared.manifests)
	require.NoError(t, err)
	after, err := shared.registration(ctx)
	require.NoError(t, err)
	assert.Equal(t, before.ResourceVersion, after.ResourceVersion, "to apply the manifests again changes nothing")

	// An upgrade that changes the webhook configuration: the answer of the API server already has the CA.
	answer, err := shared.Kubectl(ctx, "apply", "-o", "json", "-k", variant(t, shared, "/webhooks/0/timeoutSeconds", 2))
	require.NoError(t, err)
	upgraded := registrationIn(t, answer)
	assert.EqualValues(t, 2, *upgraded.Webhooks[0].TimeoutSeconds, "the variant is in effect")
	assert.Equal(t, string(ca), string(upgraded.Webhooks[0].ClientConfig.CABundle), "and there is no moment without the CA")

	_, err = shared.Kubectl(ctx, "apply", "-k", shared.manifests)
	require.NoError(t, err)
	require.NoError(t, shared.kubelet.follow(ctx))
	require.NoError(t, shared.awaitWebhook(ctx))
}

// It is not parallel: it changes the certificate that other tests look at, and ends connections.
func TestRenewedCertificatesAreServedWithoutRestart(t *testing.T) {
	u := newUser(t, shared)
	web := u.creates("web")
	processes := map[string]int{}
	for _, c := range shared.kubelet.running() {
		processes[c.Name()] = c.PID()
	}
	require.Len(t, processes, 2, "as many as the manifests say")

	t.Run("of the leaf", func(t *testing.T) {
		u := u.in(t)
		ca := shared.secret(t, leafSecret).Data["ca.crt"]
		old, renewed := shared.renew(t, leafName, leafSecret)
		assert.Equal(t, string(ca), string(shared.secret(t, leafSecret).Data["ca.crt"]), "the CA is the same")
		shared.requireServed(t, old)
		require.True(t, u.stampedAnew(), "until then the API server trusts what is served, on new connections too")

		require.NoError(t, shared.kubelet.refresh(t.Context()))
		shared.awaitServed(t, renewed)
		require.True(t, u.stampedAnew(), "and afterwards")
	})

	t.Run("of the CA", func(t *testing.T) {
		u := u.in(t)
		bundle := shared.secret(t, leafSecret).Data["ca.crt"]
		before, err := shared.certificate(t.Context(), leafSecret)
		require.NoError(t, err)
		shared.renew(t, caName, caName)
		registration, err := shared.registration(t.Context())
		require.NoError(t, err)
		require.Equal(t, string(bundle), string(registration.Webhooks[0].ClientConfig.CABundle),
			"the CA that signed the leaf is trusted as long as there is no other leaf")
		require.True(t, u.stamped(), "the API server trusts the leaf of the earlier CA, beside the renewed one")

		_, renewed := shared.renew(t, leafName, leafSecret)
		fresh := shared.secret(t, leafSecret).Data["ca.crt"]
		require.NotEqual(t, string(bundle), string(fresh), "the new leaf comes from the new CA")
		shared.awaitBundle(t, fresh)
		shared.requireServed(t, before)
		require.True(t, u.stampedAnew(), "the CA injector leaves the old CA beside the new one, so what is still served is trusted")

		require.NoError(t, shared.kubelet.refresh(t.Context()))
		shared.awaitServed(t, renewed)
		require.True(t, u.stampedAnew(), "the API server trusts the new certificate by the new caBundle")
	})

	for _, c := range shared.kubelet.running() {
		assert.Equal(t, processes[c.Name()], c.PID(), "%s took over every certificate without a restart", c.Name())
	}
	u.settled()
	u.requireChanges(web, 0, "a new certificate restarts no pods")
}

// stamped reports whether the webhook answers.
func (u *user) stamped() bool {
	u.Helper()
	return u.untilStamped(func(int) bool {
		stamped, err := u.world.stamps(u.Context())
		require.NoError(u, err)
		return stamped
	})
}

// stampedAnew reports whether the webhook answers on a new connection.
func (u *user) stampedAnew() bool {
	u.Helper()
	stamped := false
	anew := poll.Repeat(u, attempts, "the API server has not noticed yet that its connection was ended", func(int) bool {
		before := u.world.network.connections(ours)
		u.world.network.interrupt()
		stamped = u.stamped()
		return u.world.network.connections(ours) > before
	})
	return anew && stamped
}

// awaitReady waits until a Certificate or an Issuer says that it is ready.
func (w *world) awaitReady(ctx context.Context, kind, name string) error {
	return await(ctx, kind+" "+name+" to be ready", func(ctx context.Context) error {
		object, err := w.certManagers(ctx, kind, name)
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, c := range conditions {
			if condition := c.(map[string]any); condition["type"] == "Ready" && condition["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", conditions)
	})
}

// certManagers reads an object of cert-manager.
func (w *world) certManagers(ctx context.Context, kind, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: kind})
	err := w.Client().Get(ctx, client.ObjectKey{Namespace: ours.Namespace, Name: name}, object)
	return object, err
}

func (w *world) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	require.NoError(t, w.Client().Get(t.Context(), client.ObjectKey{Namespace: ours.Namespace, Name: name}, secret))
	return secret
}

// certificate is the one in a Secret of cert-manager's.
func (w *world) certificate(ctx context.Context, secret string) (*x509.Certificate, error) {
	object := &corev1.Secret{}
	if err := w.Client().Get(ctx, client.ObjectKey{Namespace: ours.Namespace, Name: secret}, object); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(object.Data[corev1.TLSCertKey])
	if block == nil {
		return nil, fmt.Errorf("Secret %s has no certificate", secret)
	}
	return x509.ParseCertificate(block.Bytes)
}

// renew has cert-manager issue a certificate anew, the way that `cmctl renew` does, and returns the old and the new one.
func (w *world) renew(t *testing.T, name, secret string) (old, renewed *x509.Certificate) {
	t.Helper()
	ctx := patiently(t)
	old, err := w.certificate(ctx, secret)
	require.NoError(t, err)
	require.NoError(t, await(ctx, "a second in which a new certificate ends later", func(context.Context) error {
		if age := time.Since(old.NotBefore); age < 2*time.Second {
			return fmt.Errorf("the present one is %s old", age)
		}
		return nil
	}))
	require.NoError(t, w.awaitReady(ctx, "Certificate", name))
	require.NoError(t, await(ctx, "the request to renew "+name, func(ctx context.Context) error {
		object, err := w.certManagers(ctx, "Certificate", name)
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		conditions = append(conditions, map[string]any{
			"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "a test asks for it",
			"lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339), "observedGeneration": object.GetGeneration(),
		})
		if err := unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"); err != nil {
			return err
		}
		return w.Client().Status().Update(ctx, object) // a conflict is tried again
	}))
	require.NoError(t, await(ctx, "a new certificate "+name, func(ctx context.Context) error {
		var err error
		if renewed, err = w.certificate(ctx, secret); err != nil {
			return err
		}
		if bytes.Equal(renewed.Raw, old.Raw) {
			return errors.New("the Secret has the old one")
		}
		return nil
	}))
	require.NoError(t, w.awaitReady(ctx, "Certificate", name))
	require.True(t, renewed.NotAfter.After(old.NotAfter), "the new certificate ends later")
	return old, renewed
}

// awaitBundle waits until the webhook configuration trusts a CA, be it beside others.
func (w *world) awaitBundle(t *testing.T, ca []byte) {
	t.Helper()
	require.NoError(t, await(patiently(t), "the caBundle to follow the certificate", func(ctx context.Context) error {
		registration, err := w.registration(ctx)
		if err != nil {
			return err
		}
		if bundle := registration.Webhooks[0].ClientConfig.CABundle; !bytes.Contains(bundle, bytes.TrimSpace(ca)) {
			return fmt.Errorf("it is\n%s", bundle)
		}
		return nil
	}))
}

// served is the certificate that a replica serves to a new connection, whether the CA of the caBundle has signed it or not.
func served(ctx context.Context, c *container) (*x509.Certificate, error) {
	// The certificate is looked at, not trusted.
	dialer := tls.Dialer{Config: &tls.Config{ServerName: installation.ServiceName, InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", c.ports[containerPort(&c.pod.Spec.Containers[0], "webhook")])
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.Name(), err)
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// requireServed requires that every replica serves a certificate, before the kubelet has updated the mounted Secret.
func (w *world) requireServed(t *testing.T, want *x509.Certificate) {
	t.Helper()
	for _, c := range w.kubelet.running() {
		now, err := served(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, want.SerialNumber, now.SerialNumber,
			"%s serves another certificate before the kubelet has updated the mounted Secret", c.Name())
	}
}

// awaitServed waits until every replica serves a certificate to new connections, and has its expiry in its metrics.
func (w *world) awaitServed(t *testing.T, want *x509.Certificate) {
	t.Helper()
	for _, c := range w.kubelet.running() {
		require.NoError(t, await(patiently(t), c.Name()+" to serve the new certificate", func(ctx context.Context) error {
			now, err := served(ctx, c)
			if err != nil {
				return err
			}
			if now.SerialNumber.Cmp(want.SerialNumber) != 0 {
				return fmt.Errorf("it serves the one that ends at %s, not at %s", now.NotAfter, want.NotAfter)
			}
			return nil
		}))
		metrics, err := c.Metrics(t.Context())
		require.NoError(t, err)
		end := int64(metrics.Sum("pod_reloader_certificate_expiry_timestamp_seconds"))
		require.Equal(t, want.NotAfter.Unix(), end, "the metrics of %s have the expiry of the new certificate", c.Name())
	}
}

func pool(t *testing.T, certificates []byte) *x509.CertPool {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificates), "ca.crt has a certificate")
	return roots
}

// variant is a kustomization of the manifests with one value of the webhook configuration replaced.
func variant(t *testing.T, w *world, path string, value any) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	manifests, err := filepath.Rel(dir, w.manifests)
	require.NoError(t, err)
	operation, err := json.Marshal([]map[string]any{{"op": "replace", "path": path, "value": value}})
	require.NoError(t, err)
	kustomization, err := yaml.Marshal(map[string]any{
		"resources": []string{manifests},
		"patches": []map[string]any{{
			"target": map[string]any{"kind": "MutatingWebhookConfiguration"}, "patch": string(operation),
		}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), kustomization, 0o600))
	return dir
}

// registrationIn is the webhook configuration in an answer of kubectl.
func registrationIn(t *testing.T, answer string) *admissionv1.MutatingWebhookConfiguration {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	require.NoError(t, list.UnmarshalJSON([]byte(answer)))
	for _, item := range list.Items {
		if item.GetKind() != "MutatingWebhookConfiguration" {
			continue
		}
		registration := &admissionv1.MutatingWebhookConfiguration{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, registration))
		return registration
	}
	require.Fail(t, "kubectl applied no webhook configuration", answer)
	return nil
}
