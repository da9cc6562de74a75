package install_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// kubelet runs the containers of pod-reloader's pods. The pods themselves are real objects, admitted, scheduled and made
// ready by the control plane; KWOK, which plays its nodes, runs nothing.
type kubelet struct {
	cp *controlplane.ControlPlane
	// executable is what the image has.
	executable, dir string
	// deployments are those whose pods it runs.
	deployments []client.ObjectKey

	mutex sync.Mutex
	pods  map[string]*container
}

// container is the one of a pod, as a process of this machine.
type container struct {
	*installation.Replica
	pod *corev1.Pod
	// ports are the addresses in place of the container's ports.
	ports map[int32]string
	// mounts are the directories of the Secrets and ConfigMaps that the pod mounts.
	mounts map[string]*volume
}

func newKubelet(ctx context.Context, cp *controlplane.ControlPlane) (*kubelet, error) {
	built, err := installation.Build(ctx, ".")
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(built)
	if err != nil {
		return nil, fmt.Errorf("copy the program: %w", err)
	}
	dir := filepath.Join(cp.Dir(), "pods")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for pods: %w", err)
	}
	executable := filepath.Join(dir, "pod-reloader")
	if err := os.WriteFile(executable, program, 0o700); err != nil {
		return nil, fmt.Errorf("copy the program: %w", err)
	}
	return &kubelet{
		cp: cp, executable: executable, dir: dir, deployments: []client.ObjectKey{ours}, pods: map[string]*container{},
	}, nil
}

// follow waits until each Deployment is rolled out, or gone, and starts and stops processes as its pods came and went.
func (k *kubelet) follow(ctx context.Context) error {
	pods, err := k.rolledOut(ctx)
	if err != nil {
		return err
	}
	wanted := sets.New[string]()
	var starts, stops []func() error
	for i := range pods {
		wanted.Insert(pods[i].Name)
		if k.container(pods[i].Name) == nil {
			starts = append(starts, func() error { return k.start(ctx, &pods[i]) })
		}
	}
	for _, c := range k.running() {
		if !wanted.Has(c.pod.Name) {
			stops = append(stops, func() error { return k.stop(ctx, c) })
		}
	}
	// As the Deployment says: no replica stops before the new ones are ready.
	return errors.Join(atOnce(starts), atOnce(stops))
}

// atOnce calls functions at the same time.
func atOnce(all []func() error) error {
	failures := make([]error, len(all))
	var running sync.WaitGroup
	for i, do := range all {
		running.Go(func() { failures[i] = do() })
	}
	running.Wait()
	return errors.Join(failures...)
}

// rolledOut waits until the pods are those that the Deployments ask for, all ready, and returns them.
func (k *kubelet) rolledOut(ctx context.Context) ([]corev1.Pod, error) {
	var all []corev1.Pod
	for _, deployment := range k.deployments {
		var pods []corev1.Pod
		err := await(ctx, "the rollout of "+deployment.String(), func(ctx context.Context) (err error) {
			pods, err = k.podsOf(ctx, deployment)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, pods...)
	}
	return all, nil
}

// podsOf returns the pods of a Deployment, or an error while its rollout is not complete. One that does not exist has none.
func (k *kubelet) podsOf(ctx context.Context, of client.ObjectKey) ([]corev1.Pod, error) {
	want := 0
	deployment := &appsv1.Deployment{}
	switch err := k.cp.Client().Get(ctx, of, deployment); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		want = int(*deployment.Spec.Replicas)
		s := deployment.Status
		if s.ObservedGeneration < deployment.Generation || int(s.ReadyReplicas) != want ||
			int(s.UpdatedReplicas) != want || int(s.Replicas) != want {
			return nil, fmt.Errorf("generation %d, %d replicas wanted: %+v", deployment.Generation, want, s)
		}
	}
	list := &corev1.PodList{}
	if err := k.cp.Client().List(ctx, list, client.InNamespace(of.Namespace)); err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		owner := metav1.GetControllerOf(&pod)
		return owner == nil || !strings.HasPrefix(owner.Name, of.Name+"-")
	})
	if len(pods) != want {
		return nil, fmt.Errorf("there are %d pods, %d are wanted", len(pods), want)
	}
	return pods, nil
}

func (k *kubelet) container(pod string) *container {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.pods[pod]
}

// running are the containers that were started and not stopped.
func (k *kubelet) running() []*container {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	all := make([]*container, 0, len(k.pods))
	for _, c := range k.pods {
		all = append(all, c)
	}
	return all
}

// reach is the address of a port of a pod.
func (k *kubelet) reach(pod string, port int32) (string, error) {
	c := k.container(pod)
	if c == nil {
		return "", fmt.Errorf("nothing runs for pod %s", pod)
	}
	address, there := c.ports[port]
	if !there {
		return "", fmt.Errorf("the container of pod %s has no port %d", pod, port)
	}
	return address, nil
}

// reachReady is like reach, but takes another container for a pod whose own is not ready yet. KWOK reports a pod as ready before its
// process is started, and in a cluster it would be no endpoint of the Service yet.
func (k *kubelet) reachReady(pod string, port int32) (string, error) {
	address, err := k.reach(pod, port)
	if k.container(pod) != nil {
		return address, err
	}
	for _, c := range k.running() {
		if address, there := c.ports[port]; there {
			return address, nil
		}
	}
	return "", err
}

// start mounts what a pod mounts and runs its container until it is ready.
func (k *kubelet) start(ctx context.Context, pod *corev1.Pod) error {
	if n := len(pod.Spec.Containers); n != 1 {
		return fmt.Errorf("pod %s has %d containers, one is expected", pod.Name, n)
	}
	c := &container{pod: pod, ports: map[int32]string{}, mounts: map[string]*volume{}}
	dir := filepath.Join(k.dir, pod.Name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a directory for pod %s: %w", pod.Name, err)
	}
	if err := k.mount(ctx, c, dir); err != nil {
		return err
	}
	program, err := k.program(c, dir)
	if err != nil {
		return err
	}
	process, err := k.cp.StartProcess(ctx, program)
	if err != nil {
		return err
	}
	c.Process = process
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.pods[pod.Name] = c
	return nil
}

// stop ends a container whose pod is gone. Nothing is sent there any more, since its endpoint is gone too.
func (k *kubelet) stop(ctx context.Context, c *container) error {
	k.mutex.Lock()
	delete(k.pods, c.pod.Name)
	k.mutex.Unlock()
	return c.Stop(ctx)
}

// mount makes a directory of each Secret and ConfigMap that the pod mounts, and waits for it as a kubelet does.
func (k *kubelet) mount(ctx context.Context, c *container, dir string) error {
	for _, v := range c.pod.Spec.Volumes {
		mounted := &volume{of: client.ObjectKey{Namespace: c.pod.Namespace}, dir: filepath.Join(dir, v.Name)}
		switch {
		case v.Secret != nil:
			mounted.of.Name, mounted.read = v.Secret.SecretName, secretData
		case v.ConfigMap != nil:
			mounted.of.Name, mounted.read = v.ConfigMap.Name, configMapData
		default:
			continue
		}
		err := await(ctx, "what is mounted from "+mounted.of.String(), func(ctx context.Context) error {
			return mounted.refresh(ctx, k.cp.Client())
		})
		if err != nil {
			return err
		}
		c.mounts[v.Name] = mounted
	}
	return nil
}

// refresh writes Secrets and ConfigMaps as they are now into the volumes, which a kubelet does within a minute or so.
func (k *kubelet) refresh(ctx context.Context) error {
	for _, c := range k.running() {
		for _, v := range c.mounts {
			if err := v.refresh(ctx, k.cp.Client()); err != nil {
				return err
			}
		}
	}
	return nil
}

// program is the pod's container with the addresses and the paths of this machine.
func (k *kubelet) program(c *container, dir string) (controlplane.Program, error) {
	spec := &c.pod.Spec.Containers[0]
	var replace []string
	for _, p := range spec.Ports {
		port, err := k.cp.FreePort()
		if err != nil {
			return controlplane.Program{}, fmt.Errorf("run pod %s: %w", c.pod.Name, err)
		}
		c.ports[p.ContainerPort] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		replace = append(replace, fmt.Sprintf("=:%d", p.ContainerPort), "="+c.ports[p.ContainerPort])
	}
	for _, m := range spec.VolumeMounts {
		if volume := c.mounts[m.Name]; volume != nil {
			replace = append(replace, "="+m.MountPath, "="+volume.dir)
		}
	}
	// The default leaves time for endpoints to be removed. A leader that cannot renew its lease for ten seconds, as on a machine that
	// stalls, would end, and nothing here starts it again.
	args := []string{
		"--shutdown-grace-period=200ms", "--leader-election-lease-duration=40s", "--leader-election-renew-deadline=30s",
	}
	for _, arg := range spec.Args {
		args = append(args, strings.NewReplacer(replace...).Replace(arg))
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	identity := controlplane.ServiceAccount(c.pod.Namespace, c.pod.Spec.ServiceAccountName)
	if err := k.cp.WriteKubeconfig(kubeconfig, identity); err != nil {
		return controlplane.Program{}, err
	}
	env, err := installation.Environment(c.pod.ObjectMeta, spec)
	if err != nil {
		return controlplane.Program{}, err
	}
	c.Replica = &installation.Replica{MetricsURL: "http://" + c.ports[containerPort(spec, "metrics")] + "/metrics", Args: args}
	probe := spec.ReadinessProbe.HTTPGet
	return controlplane.Program{
		Name: c.pod.Name, Path: k.executable, Args: args, Env: append(env, "KUBECONFIG="+kubeconfig),
		Ready: controlplane.URLReady("http://" + c.ports[containerPort(spec, probe.Port.StrVal)] + probe.Path),
	}, nil
}

// containerPort is the number of a container's port; 0 if none has the name.
func containerPort(spec *corev1.Container, name string) int32 {
	for _, p := range spec.Ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	return 0
}
