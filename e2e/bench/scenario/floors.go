package scenario

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// floors runs the programs from e2e/bench/floor that one scenario is compared with.
type floors struct {
	cp *controlplane.ControlPlane
	// scenario is its name, and that of its namespace.
	scenario string
	running  []*controlplane.Process
}

// start builds and starts a program. It is ready when it listens on the address, if there is one.
func (f *floors) start(ctx context.Context, name, address string, args ...string) error {
	path, err := installation.Build(ctx, filepath.Join("e2e", "bench", "floor", name))
	if err != nil {
		return err
	}
	program := controlplane.Program{Name: numbered(f.scenario+"-"+name, len(f.running)), Path: path, Args: args}
	if address != "" {
		program.Ready = func(ctx context.Context) error { return listening(ctx, address) }
	}
	process, err := f.cp.StartProcess(ctx, program)
	if err == nil {
		f.running = append(f.running, process)
	}
	return err
}

// stop ends all programs: they have no part in the next scenario.
func (f *floors) stop() {
	for _, process := range f.running {
		process.Kill()
	}
}

// startWebhook starts a webhook and returns its address. The address and the directory of the certificate are its last arguments.
func (f *floors) startWebhook(ctx context.Context, name string, args ...string) (string, error) {
	address, err := freeAddress(f.cp)
	if err != nil {
		return "", err
	}
	directory := filepath.Join(f.cp.Dir(), f.scenario+"-"+name)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of a certificate: %w", err)
	}
	if err := f.cp.ServingCert(directory, "localhost"); err != nil {
		return "", err
	}
	return address, f.start(ctx, name, address, append(args, address, directory)...)
}

// The labels of workloads whose writes go through a webhook: one that does nothing, or one that reads the ConfigMap live for each request.
var noop, livehook = map[string]string{"floor": "noop"}, map[string]string{"floor": "live"}

// installWebhook starts a webhook and makes the API server call it for the scenario's Deployments with some labels. It is
// reached in the same way as pod-reloader's.
func (f *floors) installWebhook(ctx context.Context, name string, labels map[string]string, args ...string) error {
	address, err := f.startWebhook(ctx, name, args...)
	if err != nil {
		return err
	}
	balancer, err := controlplane.NewBalancer(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	balancer.AddBackend(name, address, nil) //nolint:contextcheck // a backend is there for as long as its balancer
	if err := balancer.AwaitReady(ctx, 1); err != nil {
		return err
	}
	endpoint, none, timeout := "https://"+balancer.Addr()+"/mutate", admissionv1.SideEffectClassNone, int32(3)
	return f.cp.Client().Create(ctx, &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.scenario + "-" + name},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: name + ".floor.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, TimeoutSeconds: &timeout,
			ClientConfig:      admissionv1.WebhookClientConfig{URL: &endpoint, CABundle: f.cp.CA()},
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: labels},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.scenario}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	})
}

// identityOf is that of a floor program: it may do everything, and is audited as pod-reloader is.
func identityOf(name string) controlplane.Identity {
	return controlplane.Identity{User: "floor:" + name, Groups: controlplane.Admin().Groups}
}

// kubeconfig writes one for a program.
func (f *floors) kubeconfig(name string) (string, error) {
	path := filepath.Join(f.cp.Dir(), f.scenario+"-"+name+".kubeconfig")
	return path, f.cp.WriteKubeconfig(path, identityOf(name))
}

func listening(ctx context.Context, address string) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// freeAddress is a free one on loopback.
func freeAddress(cp *controlplane.ControlPlane) (string, error) {
	port, err := cp.FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// post sends an empty request to a floor program and waits for its answer.
func post(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("post %s: %s", url, response.Status)
	}
	return nil
}
