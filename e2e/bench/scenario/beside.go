package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/model"
	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// beside is pod-reloader beside a model.
type beside struct {
	*controlplane.Process

	began time.Time
}

// settings are flags and environment variables of pod-reloader, in addition to those that it always has beside a model.
type settings struct{ args, env []string }

// startBeside starts pod-reloader.
func startBeside(ctx context.Context, e *environment, m *model.Model, more settings) (*beside, error) {
	path, err := installation.Build(ctx, ".")
	if err != nil {
		return nil, err
	}
	name := numbered(e.name+"-model", m.Workloads)
	kubeconfig := filepath.Join(e.cp.Dir(), name+".kubeconfig")
	content := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: model\n"+
		"clusters: [{name: model, cluster: {server: \"http://%s\"}}]\n"+
		"contexts: [{name: model, context: {cluster: model, user: model}}]\nusers: [{name: model, user: {}}]\n", m.Address())
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		return nil, fmt.Errorf("write a kubeconfig: %w", err)
	}
	args := append([]string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + model.Home, "--webhook=false", "--settle=0s", "--refractory=0s",
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0",
	}, more.args...)
	b := &beside{began: time.Now()}
	b.Process, err = e.cp.StartProcess(ctx, controlplane.Program{Name: name, Path: path, Args: args, Env: more.env})
	return b, err
}

// quiet is for how long pod-reloader uses next to no processor time when it has nothing to do any more.
const quiet = 250 * time.Millisecond

// atRest returns the processor time that pod-reloader has used when it has used next to none for a while.
func (b *beside) atRest(ctx context.Context, between time.Duration) (time.Duration, error) {
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for before := time.Duration(-1); ; {
		used, err := processorTime(b.PID())
		if err != nil {
			return 0, fmt.Errorf("read the processor time of pod-reloader: %w", err)
		}
		if before >= 0 && used-before <= between/25 {
			return used, nil
		}
		before = used
		if err := pause(ctx, between); err != nil {
			return 0, fmt.Errorf("wait until pod-reloader is at rest: %w", err)
		}
	}
}

// startModel starts a model and pod-reloader beside it, and waits until the changes that pod-reloader missed are new templates.
func (e *environment) startModel(ctx context.Context, cluster model.Cluster, more settings) (*model.Model, *beside, error) {
	began := time.Now()
	m, err := model.Start(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	e.say("%d workloads and their configuration stored in %s", cluster.Workloads, time.Since(began).Round(time.Second))
	process, err := startBeside(ctx, e, m, more)
	if err != nil {
		return nil, nil, errors.Join(err, m.Stop())
	}
	for range model.Probes {
		if err := m.Await(ctx); err != nil {
			process.Kill()
			return nil, nil, errors.Join(fmt.Errorf("start beside %d workloads: %w\n%s", cluster.Workloads, err, process.LogEnd()), m.Stop())
		}
	}
	return m, process, nil
}
