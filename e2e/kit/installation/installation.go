package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// ServiceName is what the API server asks the webhook's certificate for.
const ServiceName = "pod-reloader.pod-reloader.svc"

// Installation is pod-reloader on one control plane. Its methods may be called from any goroutine.
type Installation struct {
	cp      *controlplane.ControlPlane
	options Options
	// objects are those of the manifests, as applied; deployment is the one among them.
	objects    []*unstructured.Unstructured
	deployment *appsv1.Deployment
	// balancer plays the webhook's Service; nil in direct mode.
	balancer *controlplane.Balancer
	// certificates is the directory of tls.crt and tls.key.
	certificates, kubeconfig, executable string
	canaries                             atomic.Int64
	keeping                              keeper

	mutex    sync.Mutex
	started  int
	replicas []*Replica
}

// Start installs pod-reloader and returns when its replicas are ready and the webhook stamps what is created. ctx bounds
// the start only; it ends with the control plane at the latest. A control plane can have several, one after the other: the
// replicas of the one before must have been stopped in order, so that the lease is free.
func Start(ctx context.Context, cp *controlplane.ControlPlane, options Options) (*Installation, error) {
	i := &Installation{cp: cp, options: options.withDefaults()}
	for cp.Component(replicaName(i.started)) != nil {
		i.started++ // names of replicas, and of canaries, are not used again
	}
	i.canaries.Store(int64(i.started) * canariesOfReplica)
	if i.options.KeepRunning {
		i.keeping.ctx, i.keeping.cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	for _, step := range []func(context.Context) error{
		i.prepare, i.install, i.connect, i.startReplicas,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("install pod-reloader: %w", err), i.Close())
		}
	}
	return i, nil
}

// canariesOfReplica is more than the canaries that there are for each replica of an installation.
const canariesOfReplica = 1000

// replicaName is the name of the n-th replica on a control plane.
func replicaName(n int) string { return "pod-reloader-" + strconv.Itoa(n) }

// prepare makes the directory with the program and the certificate, and the balancer.
func (i *Installation) prepare(ctx context.Context) error {
	dir, err := os.MkdirTemp(i.cp.Dir(), "installation-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	program := i.options.Program
	if program == "" {
		if program, err = Build(ctx, "."); err != nil {
			return err
		}
	}
	if i.executable, err = own(program, dir); err != nil {
		return err
	}
	i.kubeconfig = filepath.Join(dir, "kubeconfig")
	i.certificates = filepath.Join(dir, "tls")
	if i.options.WithoutWebhook {
		return nil
	}
	if err := os.Mkdir(i.certificates, 0o700); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	i.balancer, err = controlplane.NewBalancer(context.WithoutCancel(ctx))
	return err
}

// connect writes what the Deployment's pods get from the cluster: the identity of the service account and the certificate.
func (i *Installation) connect(context.Context) error {
	config, err := i.cp.Config(i.Identity())
	if err != nil {
		return err
	}
	if i.options.Connect != nil {
		i.options.Connect(config)
	}
	if err := controlplane.WriteKubeconfig(i.kubeconfig, config); err != nil {
		return err
	}
	if i.options.WithoutWebhook {
		return nil
	}
	return i.RenewCertificate()
}

// Identity is the user of the replicas, also in the audit log: the service account of the manifests.
func (i *Installation) Identity() controlplane.Identity {
	return controlplane.ServiceAccount(i.deployment.Namespace, i.deployment.Spec.Template.Spec.ServiceAccountName)
}

// RenewCertificate puts a new serving certificate in the place of the present one, as cert-manager does.
func (i *Installation) RenewCertificate() error {
	for _, object := range i.objects {
		if object.GetKind() == "Service" && object.GetName() == i.deployment.Name {
			return i.cp.ServingCert(i.certificates, object.GetName()+"."+object.GetNamespace()+".svc")
		}
	}
	return errors.New("the manifests have no Service for the webhook")
}

// MisnameCertificate puts a serving certificate for another name in the place of the present one.
func (i *Installation) MisnameCertificate() error {
	return i.cp.ForeignCert(i.certificates, "elsewhere.example.com")
}

// startReplicas starts the first replicas and awaits that the webhook is in effect.
func (i *Installation) startReplicas(ctx context.Context) error {
	count := i.options.Replicas
	if count == 0 {
		count = int(*i.deployment.Spec.Replicas)
	}
	count = max(count, 0)
	failures := make([]error, count)
	var starting sync.WaitGroup
	for n := range count {
		starting.Go(func() { _, failures[n] = i.AddReplica(ctx, ReplicaOptions{}) })
	}
	starting.Wait()
	if err := errors.Join(failures...); err != nil || count == 0 {
		return err
	}
	return i.awaitWebhook(ctx)
}

// ControlPlane is the one that pod-reloader is installed on.
func (i *Installation) ControlPlane() *controlplane.ControlPlane { return i.cp }

// Balancer plays the webhook's Service; nil in direct mode.
func (i *Installation) Balancer() *controlplane.Balancer { return i.balancer }

// Executable is the program that the replicas run.
func (i *Installation) Executable() string { return i.executable }

// Replicas are those that were started and not removed, running or not.
func (i *Installation) Replicas() []*Replica {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return slices.Clone(i.replicas)
}

// StopAll stops all replicas at once as a cluster does, by SIGTERM, and waits for their end.
func (i *Installation) StopAll(ctx context.Context) error {
	return i.each(func(r *Replica) error { return r.Stop(ctx) })
}

// StartAll starts the replicas that do not run and returns when all are ready and the webhook is in effect.
func (i *Installation) StartAll(ctx context.Context) error {
	err := i.each(func(r *Replica) error {
		if r.PID() != 0 {
			return nil
		}
		if err := r.Start(ctx); err != nil {
			return err
		}
		return i.awaitBackend(ctx, r.Name())
	})
	if err != nil {
		return err
	}
	return i.awaitWebhook(ctx)
}

// RestartAll stops and starts all replicas, one after the other: the rolling update of an upgrade.
func (i *Installation) RestartAll(ctx context.Context) error {
	for _, r := range i.Replicas() {
		if err := r.Restart(ctx); err != nil {
			return err
		}
		if err := i.awaitBackend(ctx, r.Name()); err != nil {
			return err
		}
	}
	return nil
}

// Close kills the replicas and gives up the balancer; the objects stay. The error has each replica that was to be kept running and
// ended by itself, but for a lost lease.
func (i *Installation) Close() error {
	ended := i.stopKeeping()
	for _, r := range i.Replicas() {
		r.Kill()
	}
	if i.balancer == nil {
		return ended
	}
	return errors.Join(ended, i.balancer.Close())
}

func (i *Installation) each(do func(*Replica) error) error {
	replicas := i.Replicas()
	failures := make([]error, len(replicas))
	var doing sync.WaitGroup
	for n, r := range replicas {
		doing.Go(func() { failures[n] = do(r) })
	}
	doing.Wait()
	return errors.Join(failures...)
}

// awaitBackend waits until the balancer sends connections to a replica.
func (i *Installation) awaitBackend(ctx context.Context, name string) error {
	if i.balancer == nil {
		return nil
	}
	return await(ctx, name+" to be an endpoint", func(context.Context) error {
		if ready := i.balancer.Ready(); !slices.Contains(ready, name) {
			return fmt.Errorf("endpoints are %v", ready)
		}
		return nil
	})
}

// interval is how often a condition is looked at. Each look costs the API server and, with the race detector, a test as
// much as a millisecond or two: at 20 ms four waiting tests kept half a processor busy.
const interval = 100 * time.Millisecond

// await asks until the answer is nil or ctx is done.
func await(ctx context.Context, what string, ask func(context.Context) error) error {
	return poll.Until(ctx, what, interval, ask)
}
