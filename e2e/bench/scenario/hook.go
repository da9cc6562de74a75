package scenario

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// webhook starts a webhook from e2e/bench/floor and registers it for Deployments with some labels.
func (e *environment) webhook(ctx context.Context, name string, labels map[string]string, args ...string) error {
	address, err := e.startHook(ctx, name, args...)
	if err != nil {
		return err
	}
	return e.register(ctx, name, address, labels)
}

// startHook starts a webhook from e2e/bench/floor and returns its address. The address and the directory of the certificate are its last
// arguments.
func (e *environment) startHook(ctx context.Context, name string, args ...string) (string, error) {
	address, err := e.address()
	if err != nil {
		return "", err
	}
	directory, err := e.certificate(name)
	if err != nil {
		return "", err
	}
	return address, e.startFloor(ctx, name, address, append(args, address, directory)...)
}

// register makes the API server ask a webhook from e2e/bench/floor about the scenario's Deployments with some labels. It is
// reached in the same way as pod-reloader's.
func (e *environment) register(ctx context.Context, name, address string, labels map[string]string) error {
	balancer, err := controlplane.NewBalancer(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	balancer.AddBackend(name, address, nil) //nolint:contextcheck // a backend is there for as long as its balancer
	if err := balancer.AwaitReady(ctx, 1); err != nil {
		return err
	}
	endpoint, none, timeout := "https://"+balancer.Addr()+"/mutate", admissionv1.SideEffectClassNone, int32(3)
	return e.Create(ctx, &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: e.name + "-" + name},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: name + ".floor.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, TimeoutSeconds: &timeout,
			ClientConfig:      admissionv1.WebhookClientConfig{URL: &endpoint, CABundle: e.cp.CA()},
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: labels},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: e.name}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	})
}

// certificate makes one for a webhook from e2e/bench/floor and returns its directory.
func (e *environment) certificate(floor string) (string, error) {
	directory, err := e.temporary(floor)
	if err != nil {
		return "", err
	}
	return directory, e.cp.ServingCert(directory, "localhost")
}
