package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/demo/narration"
	"github.com/pod-reloader/pod-reloader/e2e/demo/scorecard"
	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// namespace is where the manifests put everything.
const namespace = "shop"

// The workloads of the manifests.
var (
	cart      = observe.Deployment(namespace, "cart")
	catalog   = observe.Deployment(namespace, "catalog")
	web       = observe.Deployment(namespace, "web")
	search    = observe.Deployment(namespace, "search")
	billing   = observe.Deployment(namespace, "billing")
	mailer    = observe.Deployment(namespace, "mailer")
	heartbeat = observe.Deployment(namespace, "heartbeat")
	ledger    = observe.StatefulSet(namespace, "ledger")
	agent     = observe.DaemonSet(namespace, "agent")
	proxy     = observe.Deployment(namespace, "proxy")
)

func allWorkloads() []observe.Workload {
	return []observe.Workload{cart, catalog, web, search, billing, mailer, heartbeat, ledger, agent, proxy}
}

// drain is how long the replicas serve admission after SIGTERM, the one setting that is not the default: the default is
// 10 s, since it takes a cluster that long to send connections elsewhere, and here it takes 0.1 s.
const drain = 500 * time.Millisecond

// stage sets everything up, up to the running workloads.
func (d *demo) stage(ctx context.Context) error {
	d.narrator.Title("pod-reloader: a change of configuration is one rollout, and nothing else is")
	if err := d.build(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.boot, d.define, d.install, d.configure, d.apply} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// build builds what is missing and keeps the paths of the programs.
func (d *demo) build(ctx context.Context) error {
	begun := d.narrator.Elapsed()
	builder := toolchain.Builder{Progress: d.options.out}
	root, err := toolchain.Root()
	if err != nil {
		return err
	}
	d.version = cmp.Or(os.Getenv("K8S_VERSION"), controlplane.Newest)
	directory, err := builder.Build(ctx, "kubernetes-"+d.version)
	if err != nil {
		return err
	}
	for _, tool := range []string{"etcd", "kwok"} {
		if _, err := builder.Build(ctx, tool); err != nil {
			return err
		}
	}
	if err := d.buildReloader(ctx); err != nil {
		return err
	}
	d.shell = &shell{narrator: d.narrator, dir: root, programs: map[string]string{
		"kubectl": filepath.Join(directory, "kubectl"), "pod-reloader": d.program,
	}}
	d.building = d.narrator.Elapsed() - begun
	return nil
}

// patienceWithBuilds is after how long a build is mentioned; from a warm cache it is shorter.
const patienceWithBuilds = 2 * time.Second

// buildReloader builds pod-reloader from the working tree.
func (d *demo) buildReloader(ctx context.Context) error {
	built := make(chan error, 1)
	go func() {
		var err error
		d.program, err = installation.Build(ctx, ".")
		built <- err
	}()
	timer := time.NewTimer(patienceWithBuilds)
	defer timer.Stop()
	select {
	case err := <-built:
		return err
	case <-timer.C:
		d.narrator.Say("Building pod-reloader …")
		return <-built
	}
}

// boot starts the control plane and the observer.
func (d *demo) boot(ctx context.Context) error {
	begun := d.narrator.Elapsed()
	var err error
	if d.cp, err = controlplane.Start(ctx, controlplane.Options{Version: d.version, Progress: d.options.out}); err != nil {
		return err
	}
	d.shell.env = []string{
		"KUBECONFIG=" + d.cp.AdminKubeconfig(), "KUBECACHEDIR=" + filepath.Join(d.cp.Dir(), "demo-cache"), "KUBERC=off",
	}
	if d.watcher, err = observe.Start(context.WithoutCancel(ctx), d.cp.Admin(), namespace, configuration()...); err != nil {
		return err
	}
	d.narrator.Say("Kubernetes %s booted in %s: etcd, API server, controllers, scheduler; KWOK plays three nodes.",
		d.cp.Version(), narration.Seconds(d.narrator.Elapsed()-begun))
	return nil
}

// install runs pod-reloader as manifests/ say.
func (d *demo) install(ctx context.Context) error {
	if d.options.absent {
		d.narrator.Say("pod-reloader is left out: what follows must go wrong.")
		return nil
	}
	begun := d.narrator.Elapsed()
	var err error
	d.reloader, err = installation.Start(ctx, d.cp, installation.Options{
		Program: d.program, Args: []string{"--shutdown-grace-period=" + drain.String(), fromSettings},
	})
	if err != nil {
		return err
	}
	if d.options.installed != nil {
		d.options.installed(d.reloader)
	}
	d.program = d.reloader.Executable()
	d.shell.programs["pod-reloader"] = d.program
	d.shell.env = append(d.shell.env, "POD_NAMESPACE="+d.reloader.Namespace())
	replicas := len(d.reloader.Replicas())
	d.narrator.Say("pod-reloader installed from manifests/ in %s: %d processes under the service account's permissions, TLS, leader "+
		"election. Defaults: a change settles for 1 s, reloads of one workload are 5 s apart.",
		narration.Seconds(d.narrator.Elapsed()-begun), replicas)
	return nil
}

// apply creates the workloads and waits until their pods run.
func (d *demo) apply(ctx context.Context) error {
	created := d.card.Promise("everything is applied for the first time", "0 rollouts besides")
	r, err := d.shell.brief(ctx, apply("e2e/demo/manifests")...)
	if err != nil {
		return err
	}
	d.narrator.Say("The demo plays the operator of the custom resources, which reports that they are valid:")
	if _, err := d.reported(ctx, 1, "True"); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, defaultPatience)
	defer cancel()
	for _, w := range allWorkloads() {
		if err := d.watcher.Await(wait, "the pods of "+w.String(), func() error { return ready(d.watcher.Object(w)) }); err != nil {
			return err
		}
	}
	d.narrator.Seen(narration.After(time.Since(r.ended)), "all pods are ready")
	if err := d.awaitAdoption(ctx); err != nil {
		return err
	}
	windows, err := d.open(ctx, allWorkloads()...)
	if err != nil {
		return err
	}
	d.atTheEnd(created, func() scorecard.Finding { return scorecard.Rollouts(0, d.sum(windows)) })
	_, err = d.shell.run(ctx, kubectl("get", "deployments,statefulsets,daemonsets",
		"-o", "custom-columns-file=e2e/demo/output/uses.columns")...)
	return err
}

// ready reports whether all pods of a workload run.
func ready(object *unstructured.Unstructured) error {
	if object == nil {
		return errors.New("it does not exist")
	}
	want, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	have, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas")
	if object.GetKind() == "DaemonSet" {
		want, _, _ = unstructured.NestedInt64(object.Object, "status", "desiredNumberScheduled")
		have, _, _ = unstructured.NestedInt64(object.Object, "status", "numberReady")
	}
	if want == 0 || have < want {
		return fmt.Errorf("%d of %d are ready", have, want)
	}
	return nil
}
