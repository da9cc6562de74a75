package install_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/operator"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

const (
	// patience bounds every wait: long enough for a loaded machine, and a failure in the end.
	patience = 5 * time.Minute
	// startTimeout bounds the making of a world, the builds not counted that the toolchain reports.
	startTimeout = 30 * time.Minute
	// inTime is less than the timeout of the webhook. A write that took longer may have passed without it on a slow machine:
	// that shows nothing, so another write is made, attempts of them at most.
	inTime   = 2 * time.Second
	attempts = 10
	// interval is the pause between two checks of a condition that has no event.
	interval = 100 * time.Millisecond
)

// ours is the name of the Deployment, of the webhook's Service and of more, as in the manifests.
var ours = client.ObjectKey{Namespace: "pod-reloader", Name: "pod-reloader"}

// world is a cluster with cert-manager, before pod-reloader is installed.
type world struct {
	*controlplane.ControlPlane
	network *network
	kubelet *kubelet
	// manifests is what the documentation says to apply.
	manifests string
}

// options are those of a control plane whose API server reaches Services through a network.
func options(n *network) controlplane.Options {
	return controlplane.Options{Args: map[string][]string{
		controlplane.APIServer: {"--egress-selector-config-file=" + n.config()},
	}}
}

// newWorld makes a world for one test.
func newWorld(t *testing.T) *world {
	t.Helper()
	n, err := newNetwork()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.close()) })
	cp := controlplane.New(t, options(n))
	w, err := furnish(t.Context(), cp, n)
	require.NoError(t, err)
	t.Cleanup(func() { w.explain(t) })
	return w
}

// furnish runs cert-manager on a control plane.
func furnish(ctx context.Context, cp *controlplane.ControlPlane, n *network) (*world, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	root, err := toolchain.Root()
	if err != nil {
		return nil, err
	}
	k, err := newKubelet(ctx, cp)
	if err != nil {
		return nil, err
	}
	n.connect(cp.Client(), k.reach)
	w := &world{ControlPlane: cp, network: n, kubelet: k, manifests: filepath.Join(root, "manifests")}
	if err := operator.DefineCertManager(ctx, cp); err != nil {
		return nil, err
	}
	return w, operator.RunCertManager(ctx, cp)
}

// install is the documented installation: it returns what kubectl prints, once the pods run and the webhook stamps.
func (w *world) install(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said, err := w.Kubectl(ctx, "apply", "-k", w.manifests, "--warnings-as-errors")
	if err != nil {
		return said, err
	}
	if err := w.kubelet.follow(ctx); err != nil {
		return said, err
	}
	return said, w.awaitWebhook(ctx)
}

// awaitWebhook waits until what is created is stamped. Each attempt is a dry run.
func (w *world) awaitWebhook(ctx context.Context) error {
	return await(ctx, "the webhook to be in effect", func(ctx context.Context) error {
		stamped, err := w.stamps(ctx)
		if err == nil && !stamped {
			return errors.New("a Deployment was created without a stamp")
		}
		return err
	})
}

// stamps reports whether the webhook stamps a new Deployment, in a dry run.
func (w *world) stamps(ctx context.Context) (bool, error) {
	probe := workload("default", "probe", "kube-root-ca.crt")
	if err := w.Client().Create(ctx, probe, client.DryRunAll); err != nil {
		return false, fmt.Errorf("create a Deployment: %w", err)
	}
	return probe.Spec.Template.Annotations[configHash] != "", nil
}

// registration is the webhook configuration as it is now.
func (w *world) registration(ctx context.Context) (*admissionv1.MutatingWebhookConfiguration, error) {
	registration := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ours.Name}}
	if err := w.Client().Get(ctx, client.ObjectKeyFromObject(registration), registration); err != nil {
		return nil, fmt.Errorf("read the webhook configuration: %w", err)
	}
	if n := len(registration.Webhooks); n != 1 {
		return nil, fmt.Errorf("there are %d webhooks, one is expected", n)
	}
	return registration, nil
}

// logTail is how much of a log a failing test shows.
const logTail = 6 << 10

// explain shows the ends of the logs when a test has failed.
func (w *world) explain(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, c := range w.kubelet.running() {
		if log, err := c.Log(); err == nil {
			t.Logf("the end of the log of %s:\n%s", c.Name(), log[max(0, len(log)-logTail):])
		}
	}
	said, err := w.Kubectl(context.WithoutCancel(t.Context()), "get", "-A", "-o", "wide",
		"pods,certificates,certificaterequests,issuers,mutatingwebhookconfigurations")
	t.Logf("what there is: %v\n%s", err, said)
}

// patiently is the context of one wait.
func patiently(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// await asks until the answer is nil or ctx is done.
func await(ctx context.Context, what string, ask func(context.Context) error) error {
	return poll.Until(ctx, what, interval, ask)
}
