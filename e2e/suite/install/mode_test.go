package install_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestChangingTheCertificateMode changes the mode of an installation from cert-manager to self-managed and back, while the webhook
// is called all the time. It is not parallel: it replaces the installation of other tests, and puts the default one back.
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
	for _, step := range []struct{ name, dir, serves string }{
		{"to self-managed", selfManaged, certificatesSecret},
		{"back to cert-manager", certManager, leafSecret},
		{"to self-managed again", selfManaged, certificatesSecret},
	} {
		_, err = w.Kubectl(ctx, "apply", "-k", step.dir)
		require.NoError(t, err, step.name)
		require.NoError(t, w.kubelet.follow(ctx), "%s: the new replicas become ready", step.name)
		w.requireServedAndTrusted(t, step.serves)
		l.awaitMore(ctx, t)
		assert.Empty(t, l.failed(), step.name)
		if step.dir == selfManaged {
			u.forgetEarlierCAs()
		} else {
			u.kubectl("delete", "secret", certificatesSecret, "-n", ours.Namespace) // as documented
		}
	}
	l.stop()
	t.Logf("%d calls", l.calls.Load())
	assert.Empty(t, l.failed(), "no call failed")
	assert.Equal(t, string(before), string(w.secret(t, leafSecret).Data["ca.crt"]), "the CA of cert-manager was not made again")
	require.True(t, u.stampedAnew(), "also on a new connection of the API server")
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
