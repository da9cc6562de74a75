package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func (cp *ControlPlane) startStorage(ctx context.Context) error {
	return cp.startComponent(ctx, cp.layout.etcdProgram())
}

func (cp *ControlPlane) startAPI(ctx context.Context) error {
	ready := tlsReady(cp.authority)("https://" + cp.Address() + "/readyz")
	program := cp.layout.apiserverProgram(ready)
	args, err := cp.webhookClientArgs()
	if err != nil {
		return err
	}
	program.Args = append(program.Args, args...)
	if err := cp.startComponent(ctx, program); err != nil {
		return err
	}
	// Without a logger, controller-runtime prints a stack trace into the output of the caller.
	log.SetLogger(logr.Discard())
	if cp.client, err = client.New(cp.Admin(), client.Options{}); err != nil {
		return fmt.Errorf("make the administrator's client: %w", err)
	}
	return nil
}

// startControllers starts what works on the API, all at once, and waits until pods can run.
func (cp *ControlPlane) startControllers(ctx context.Context) error {
	ready := tlsReady(cp.authority)
	group, ctx := errgroup.WithContext(ctx)
	for _, program := range []Program{cp.layout.controllerManagerProgram(ready), cp.layout.schedulerProgram(ready)} {
		group.Go(func() error { return cp.startComponent(ctx, program) })
	}
	if cp.runs(KWOK) {
		group.Go(func() error { return cp.startKWOK(ctx) })
	}
	if cp.runs(ControllerManager) {
		group.Go(func() error { return cp.awaitNamespace(ctx, metav1.NamespaceDefault) })
	}
	return group.Wait()
}

// startKWOK adds the nodes when KWOK is ready. Before, it prepares its metrics, and a node that comes meanwhile makes it write to the
// same map at the same time (easycel.getTypeValue), which ends it.
func (cp *ControlPlane) startKWOK(ctx context.Context) error {
	if err := cp.startComponent(ctx, cp.layout.kwokProgram()); err != nil {
		return err
	}
	return cp.addNodes(ctx)
}

func (cp *ControlPlane) runs(component string) bool {
	return !slices.Contains(cp.options.Without, component)
}

func (cp *ControlPlane) startComponent(ctx context.Context, program Program) error {
	if !cp.runs(program.Name) {
		return nil
	}
	program.Args = append(program.Args, cp.options.Args[program.Name]...)
	program.Env = append(program.Env, cp.options.Env...)
	_, err := cp.StartProcess(ctx, program)
	return err
}

// addNodes creates the nodes and waits until pods may be bound to them. Without the controller
// manager, the taint of a node that is not ready stays on them.
func (cp *ControlPlane) addNodes(ctx context.Context) error {
	for i := range cp.options.Nodes {
		node := newNode(fmt.Sprintf("node-%d", i))
		if err := cp.client.Create(ctx, node); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
	}
	return await(ctx, "ready nodes", func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := cp.client.List(ctx, &nodes); err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		for i := range nodes.Items {
			if !cp.usable(&nodes.Items[i]) {
				return fmt.Errorf("node %s is not ready", nodes.Items[i].Name)
			}
		}
		return nil
	})
}

func (cp *ControlPlane) usable(node *corev1.Node) bool {
	tainted := len(node.Spec.Taints) > 0 && cp.runs(ControllerManager)
	return !tainted && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func newNode(name string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("10000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{corev1.LabelHostname: name, "type": KWOK},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// awaitNamespace waits for what Kubernetes puts into every namespace. Pods cannot be created
// before the service account is there, and a client that tries is put off for a while.
func (cp *ControlPlane) awaitNamespace(ctx context.Context, namespace string) error {
	return await(ctx, "the service account of namespace "+namespace, func(ctx context.Context) error {
		return errors.Join(
			cp.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{}),
			cp.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{}),
		)
	})
}
