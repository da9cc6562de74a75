package installation

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// Replica is one process of the program. Its Process can be stopped, killed, frozen and started again; the balancer goes
// by its readiness as a Service does.
type Replica struct {
	*controlplane.Process
	// MetricsURL, HealthURL and WebhookAddress are its own; WebhookAddress is a host and port.
	MetricsURL, HealthURL, WebhookAddress string
	// Args are those it was started with.
	Args []string
}

// ReplicaOptions make a replica different from the others, as during an upgrade.
type ReplicaOptions struct {
	// Args follow those of the installation, of which the flags in Without are left out.
	Args, Without []string
	// Env is added to the environment.
	Env []string
	// Program is another executable than the installation's.
	Program string
}

// AddReplica starts one more replica and returns when it is ready and the balancer knows it.
func (i *Installation) AddReplica(ctx context.Context, options ReplicaOptions) (*Replica, error) {
	i.mutex.Lock()
	name := replicaName(i.started)
	i.started++
	i.mutex.Unlock()
	program, replica, err := i.program(name, options)
	if err != nil {
		return nil, err
	}
	replica.Process, err = i.cp.StartProcess(ctx, program)
	if err != nil {
		return nil, err
	}
	i.mutex.Lock()
	i.replicas = append(i.replicas, replica)
	i.mutex.Unlock()
	i.keepRunning(replica) //nolint:contextcheck // until the installation ends
	if i.balancer == nil {
		return replica, nil
	}
	ready := controlplane.URLReady(replica.HealthURL + "/readyz")
	i.balancer.AddProcess(replica.Process, replica.WebhookAddress, ready) //nolint:contextcheck // asked for as long as the balancer lives
	return replica, i.awaitBackend(ctx, name)
}

// RemoveReplica takes a replica out as the deletion of its pod does: the endpoint goes, the process gets SIGTERM and ends.
func (i *Installation) RemoveReplica(ctx context.Context, replica *Replica) error {
	if i.balancer != nil {
		i.balancer.RemoveBackend(replica.Name())
	}
	i.mutex.Lock()
	i.replicas = slices.DeleteFunc(slices.Clone(i.replicas), func(r *Replica) bool { return r == replica })
	i.mutex.Unlock()
	return replica.Stop(ctx)
}

// program says how to run a replica: the container of the manifests with this machine's addresses.
func (i *Installation) program(name string, options ReplicaOptions) (controlplane.Program, *Replica, error) {
	container := &i.deployment.Spec.Template.Spec.Containers[0]
	var addresses [3]string
	for n := range addresses {
		port, err := i.cp.FreePort()
		if err != nil {
			return controlplane.Program{}, nil, fmt.Errorf("run %s: %w", name, err)
		}
		addresses[n] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	replaced := map[string]string{
		"--metrics-bind-address":      addresses[0],
		"--health-probe-bind-address": addresses[1],
		"--webhook-bind-address":      addresses[2],
		"--webhook-tls-directory":     i.certificates,
	}
	args := i.arguments(container.Args, replaced, options)
	env, err := Environment(metav1.ObjectMeta{Namespace: i.deployment.Namespace, Name: name, UID: types.UID("uid-of-" + name)}, container)
	if err != nil {
		return controlplane.Program{}, nil, err
	}
	replica := &Replica{
		MetricsURL: "http://" + addresses[0] + "/metrics", HealthURL: "http://" + addresses[1],
		WebhookAddress: addresses[2], Args: args,
	}
	program := controlplane.Program{
		Name: name, Path: i.executable, Args: args,
		Env:   slices.Concat([]string{"KUBECONFIG=" + i.kubeconfig}, env, i.options.Env, options.Env),
		Ready: controlplane.URLReady(replica.HealthURL + "/readyz"),
		Grace: time.Duration(*i.deployment.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second,
	}
	if options.Program != "" {
		program.Path = options.Program
	}
	return program, replica, nil
}

// arguments are those of the container, with the values of this machine, those of the installation, and those of the replica.
func (i *Installation) arguments(container []string, replaced map[string]string, options ReplicaOptions) []string {
	args := slices.Clone(container)
	for n, arg := range args {
		flag, _, _ := strings.Cut(arg, "=")
		if value, ours := replaced[flag]; ours {
			args[n] = flag + "=" + value
		}
	}
	args = slices.DeleteFunc(append(args, i.options.Args...), func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return slices.Contains(options.Without, flag)
	})
	return append(args, options.Args...)
}

// Environment is that of a container in a pod, as the kubelet would fill it in.
func Environment(pod metav1.ObjectMeta, container *corev1.Container) ([]string, error) {
	var env []string
	for _, variable := range container.Env {
		value := variable.Value
		switch from := variable.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			value = pod.Namespace
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.name":
			value = pod.Name
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.uid":
			value = string(pod.UID)
		case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
			value = strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10)
		default:
			return nil, fmt.Errorf("variable %s of pod %s comes from where only a kubelet could take it", variable.Name, pod.Name)
		}
		env = append(env, variable.Name+"="+value)
	}
	return env, nil
}

// Log is what a replica has logged so far, all its lives.
func (r *Replica) Log() (string, error) {
	content, err := os.ReadFile(r.LogPath())
	if err != nil {
		return "", fmt.Errorf("read the log of %s: %w", r.Name(), err)
	}
	return string(content), nil
}

// Logged returns an error unless one line of the log has all the texts.
func (r *Replica) Logged(texts ...string) error {
	log, err := r.Log()
	if err != nil {
		return err
	}
	for line := range strings.Lines(log) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return nil
		}
	}
	return fmt.Errorf("the log of %s has no line with %q", r.Name(), texts)
}
