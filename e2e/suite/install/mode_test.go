package install_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/certs/rotate"
)

// TestChangingTheCertificateMode changes the mode of an installation from cert-manager to self-managed and back, and at last to a given
// certificate, while the webhook is called all the time. It is not parallel: it replaces the installation of other tests, and puts the default one back.
func TestChangingTheCertificateMode(t *testing.T) {
	u := newUser(t, shared)
	w, ctx := shared, patiently(t)
	w.network.connect(w.Client(), w.kubelet.reachReady)
	defer w.network.connect(w.Client(), w.kubelet.reach)
	certManager, selfManaged := strict(t, w, nil), strict(t, w, []string{"self-managed-certificates", "guard"})
	defer func() {
		u.kubectl("delete", "-k", selfManaged, "--ignore-not-found", "--wait=true")
		require.NoError(t, w.kubelet.follow(patiently(t)))
		_, err := w.install(patiently(t))
		require.NoError(t, err, "the default installation is back")
	}()
	_, err := w.Kubectl(ctx, "apply", "-k", certManager)
	require.NoError(t, err)
	require.NoError(t, w.awaitWebhook(ctx))
	before := w.secret(t, leafSecret).Data["ca.crt"]

	l := startCalls(u)
	defer l.stop()
	u.changesMode(l, "to self-managed", selfManaged, certificatesSecret)
	u.forgetEarlierCAs()
	u.changesMode(l, "back to cert-manager", certManager, leafSecret)
	ca := w.giveCertificate(t)
	u.requireConflict(given(t, w, ca, before), "cert-manager-cainjector")
	u.kubectl("delete", "secret", certificatesSecret, "-n", ours.Namespace) // as documented
	u.changesMode(l, "to self-managed again", selfManaged, certificatesSecret)
	u.forgetEarlierCAs()
	toGiven := given(t, w, ca, w.secret(t, certificatesSecret).Data["ca.crt"])
	u.requireConflict(toGiven, "pod-reloader")
	u.changesMode(l, "to a given certificate", toGiven, givenSecret, "--server-side", "--force-conflicts")
	l.stop()
	t.Logf("%d calls", l.calls.Load())
	assert.Empty(t, l.failed(), "no call failed")
	assert.Equal(t, string(before), string(w.secret(t, leafSecret).Data["ca.crt"]), "the CA of cert-manager was not made again")
	require.True(t, u.stampedAnew(), "also on a new connection of the API server")
}

// changesMode applies a kustomization, after which the replicas serve the certificate of a Secret. No call fails meanwhile.
func (u *user) changesMode(l *load, name, dir, serves string, flags ...string) {
	u.Helper()
	ctx := patiently(u.T)
	_, err := u.world.Kubectl(ctx, append([]string{"apply", "-k", dir}, flags...)...)
	require.NoError(u, err, name)
	require.NoError(u, u.world.kubelet.follow(ctx), "%s: the new replicas become ready", name)
	u.world.requireServedAndTrusted(u.T, serves)
	l.awaitMore(ctx, u.T)
	assert.Empty(u, l.failed(), name)
}

// requireConflict requires that server-side apply without --force-conflicts does not replace the caBundle of a field manager.
func (u *user) requireConflict(dir, manager string) {
	u.Helper()
	_, err := u.world.Kubectl(patiently(u.T), "apply", "-k", dir, "--server-side", "--dry-run=server")
	require.ErrorContains(u, err, fmt.Sprintf("conflict with %q", manager))
	require.ErrorContains(u, err, ".clientConfig.caBundle")
}

// given is strict for a certificate that a user gives, as the chart renders it: the caBundle has its CA in addition to the earlier one.
func given(t *testing.T, w *world, ca, earlier []byte) string {
	t.Helper()
	bundle := base64.StdEncoding.EncodeToString(slices.Concat(ca, earlier))
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/annotations", "value": map[string]string{rotate.SharedBundle: "true"}},
		{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle},
	})
	require.NoError(t, err)
	return strict(t, w, []string{"guard"}, map[string]any{
		"target": map[string]any{"kind": "MutatingWebhookConfiguration", "name": ours.Name}, "patch": string(patch),
	}, map[string]any{
		"target": map[string]any{"kind": "Deployment", "name": ours.Name},
		"patch": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"any"},"spec":{"template":{"spec":{` +
			`"volumes":[{"name":"tls","secret":{"secretName":"` + givenSecret + `"}}]}}}}`,
	})
}

// forgetEarlierCAs is what happens a day after the mode was changed.
func (u *user) forgetEarlierCAs() {
	u.Helper()
	u.removeFromSecret("old-ca.crt")
	u.requireOneCA()
}

// requireServedAndTrusted requires that all replicas serve the certificate of a Secret, on new connections, and that the webhook
// configuration trusts it.
func (w *world) requireServedAndTrusted(t *testing.T, secret string) {
	t.Helper()
	require.NoError(t, await(patiently(t), "the certificate of "+secret, func(ctx context.Context) error {
		want, err := w.certificate(ctx, secret)
		if err != nil {
			return err
		}
		for _, c := range w.kubelet.running() {
			if now, err := served(ctx, c); err != nil || !bytes.Equal(now.Raw, want.Raw) {
				return fmt.Errorf("%s serves another certificate (%w)", c.Name(), err)
			}
		}
		if len(w.kubelet.running()) != 2 {
			return errors.New("there are not two replicas")
		}
		return trustedEverywhere(ctx, w)
	}))
}
