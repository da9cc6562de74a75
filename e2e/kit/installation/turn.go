package installation

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// Turn is a test that shares its control plane with others, but no installation.
type Turn struct {
	Name string
	// Run installs by [NewInTurn].
	Run func(*testing.T, *controlplane.ControlPlane)
}

// InTurn runs tests on one control plane, one after the other, which is cheaper than a control plane for each. What the
// manifests of one have installed stays for the next one, permissions included: a test that is about missing permissions comes first.
func InTurn(t *testing.T, on controlplane.Options, tests []Turn) {
	t.Helper()
	cp := controlplane.New(t, on)
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) { test.Run(t, cp) })
	}
}

// NewInTurn is [New] for an installation that stops before the next one starts on its control plane.
func NewInTurn(t *testing.T, cp *controlplane.ControlPlane, options Options) *Installation {
	t.Helper()
	i := New(t, cp, options)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startTimeout)
		defer cancel()
		if err := i.leave(ctx); err != nil {
			t.Error(err)
		}
	})
	return i
}

// NewPromptInTurn is [NewInTurn] without the refractory gate and with a short settle time, in which each write waits for the webhook.
func NewPromptInTurn(t *testing.T, cp *controlplane.ControlPlane, options Options) *Installation {
	t.Helper()
	options.Args = append([]string{"--refractory=0s", "--settle=200ms", "--shutdown-grace-period=200ms"}, options.Args...)
	options.Patient = true
	return NewInTurn(t, cp, options)
}

// leave gives the lease back and takes the webhook away. The API server waits for its webhook, which is away only where no
// process listens.
func (i *Installation) leave(ctx context.Context) error {
	ended := i.stopKeeping()
	if err := errors.Join(ended, i.StopAll(ctx)); err != nil {
		return fmt.Errorf("stop the replicas: %w", err)
	}
	name := i.WebhookConfiguration()
	if name == "" {
		return nil
	}
	webhook := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := i.cp.Client().Delete(ctx, webhook); err != nil {
		return fmt.Errorf("delete the webhook's configuration: %w", err)
	}
	return nil
}
