package controlplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// ControlPlane is one that runs. All methods may be called from any goroutine.
type ControlPlane struct {
	options   Options
	layout    layout
	authority *authority
	admin     *rest.Config
	client    client.Client
	audit     *AuditLog
	// tokens are those of identities, by [Identity.key].
	tokens map[string]string
	// proxies are those of components, by name.
	proxies map[string]*Proxy
	janitor *janitor
	// owner is the test that it ends with; nil if several share it.
	owner testing.TB
	ports ports

	mutex     sync.Mutex
	minted    map[string]keyPair
	processes []*Process
	stopOnce  sync.Once
	stopErr   error
}

// Start builds what is missing, boots a control plane and returns when it can run pods. ctx bounds
// the start only. The caller stops it; see also [New] and [Main]. In a test it is one that takes less processor time.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if testing.Testing() {
		options = forTests(options)
	}
	cp := &ControlPlane{options: options.withDefaults(), minted: map[string]keyPair{}, proxies: map[string]*Proxy{}}
	if err := cp.build(ctx); err != nil {
		return nil, fmt.Errorf("start a control plane: %w", err)
	}
	for _, step := range []func(context.Context) error{
		cp.prepare, cp.startStorage, cp.startAPI, cp.startControllers,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("start a control plane: %w", err), cp.Stop())
		}
	}
	return cp, nil
}

// Stop kills everything that runs, further processes included, and removes the directory. What a
// test wants to see end well it stops itself before.
func (cp *ControlPlane) Stop() error {
	cp.stopOnce.Do(func() { cp.stopErr = cp.stop() })
	return cp.stopErr
}

// Version is the release of Kubernetes, like "1.36".
func (cp *ControlPlane) Version() string { return cp.options.Version }

// Address is the host and port of the API server.
func (cp *ControlPlane) Address() string { return loopback(cp.layout.apiserverPort) }

// Dir is a directory for files that shall go with the control plane.
func (cp *ControlPlane) Dir() string { return cp.layout.dir }

// CA is the certificate, PEM, of the authority that signs every certificate here.
func (cp *ControlPlane) CA() []byte { return slices.Clone(cp.authority.pem) }

// Client does everything that an administrator may, on the kinds of Kubernetes by their Go types
// and on any other as unstructured objects.
func (cp *ControlPlane) Client() client.Client { return cp.client }

// Audit is the log of the requests that the API server served.
func (cp *ControlPlane) Audit() *AuditLog { return cp.audit }

// Proxy is between a component and what is next; nil unless the option Proxied names it.
func (cp *ControlPlane) Proxy(component string) *Proxy { return cp.proxies[component] }

// Component is a running or stopped component by its name, or a process started by StartProcess;
// nil when there is none.
func (cp *ControlPlane) Component(name string) *Process {
	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	for _, p := range cp.processes {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// StartProcess runs a further program beside the components, like the program under test: it can be
// controlled in the same way and ends with the control plane at the latest.
func (cp *ControlPlane) StartProcess(ctx context.Context, program Program) (*Process, error) {
	if cp.Component(program.Name) != nil {
		return nil, fmt.Errorf("start %s: there is a process of that name, use its Start", program.Name)
	}
	p := &Process{
		program: program,
		logPath: filepath.Join(cp.layout.logs, program.Name+".log"),
		pidDir:  cp.layout.file("pids"),
	}
	if program.Name == APIServer {
		p.ended = cp.audit.abandon
	}
	cp.mutex.Lock()
	cp.processes = append(cp.processes, p)
	cp.mutex.Unlock()
	return p, p.Start(ctx)
}

// FreePort reserves a TCP port on loopback until the control plane stops.
func (cp *ControlPlane) FreePort() (int, error) {
	cp.mutex.Lock()
	defer cp.mutex.Unlock()
	return cp.ports.take()
}

func (cp *ControlPlane) build(ctx context.Context) error {
	builder := toolchain.Builder{Progress: cp.options.Progress}
	for _, tool := range []struct {
		name string
		dir  *string
	}{
		{"kubernetes-" + cp.options.Version, &cp.layout.kubernetes},
		{"etcd", &cp.layout.etcd},
		{"kwok", &cp.layout.kwok},
	} {
		var err error
		if *tool.dir, err = builder.Build(ctx, tool.name); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the directory with all that the components read.
func (cp *ControlPlane) prepare(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "controlplane-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	cp.layout.dir = dir
	if cp.janitor, err = newJanitor(dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	cp.layout.logs = filepath.Join(dir, "logs")
	if cp.options.KeepLogs != "" {
		if cp.layout.logs, err = filepath.Abs(filepath.Join(cp.options.KeepLogs, filepath.Base(dir))); err != nil {
			return fmt.Errorf("find the directory of kept logs: %w", err)
		}
	}
	for _, path := range []string{cp.layout.logs, cp.layout.file("pids")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
	}
	if err := cp.layout.takePorts(&cp.ports); err != nil {
		return err
	}
	if err := cp.startProxies(); err != nil {
		return err
	}
	if err := cp.writeKeys(); err != nil {
		return err
	}
	cp.audit = newAuditLog(cp.layout.auditLog())
	if err := cp.options.Audit.write(cp.layout.file("audit-policy.yaml")); err != nil {
		return err
	}
	return cp.writeStages(ctx)
}

// startProxies starts the proxies that the options name, before the components and their configurations.
func (cp *ControlPlane) startProxies() error {
	for _, name := range cp.options.Proxied {
		next := cp.Address()
		if name == Etcd {
			next = cp.layout.etcdAddress
		}
		proxy, err := NewProxy(next)
		if err != nil {
			return fmt.Errorf("start a proxy for %s: %w", name, err)
		}
		cp.proxies[name] = proxy
		if name == Etcd {
			cp.layout.etcdAddress = proxy.Addr()
		}
	}
	return nil
}

// writeKeys makes the keys, certificates and kubeconfigs.
func (cp *ControlPlane) writeKeys() error {
	var err error
	if cp.authority, err = newAuthority(); err != nil {
		return err
	}
	caKey, err := encodeKey(cp.authority.key)
	if err != nil {
		return err
	}
	serving, err := cp.authority.server("kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")
	if err != nil {
		return err
	}
	accounts, err := newServiceAccountKey()
	if err != nil {
		return err
	}
	dir := cp.layout.dir
	errs := []error{
		keyPair{certificate: cp.authority.pem, key: caKey}.write(dir, "ca"),
		serving.write(dir, "apiserver"),
		os.WriteFile(cp.layout.file("service-accounts.key"), accounts, 0o600),
	}
	components := map[string]Identity{
		"admin":           Admin(),
		ControllerManager: {User: "system:" + ControllerManager},
		Scheduler:         {User: "system:" + Scheduler},
		KWOK:              kwokIdentity(),
	}
	errs = append(errs, cp.writeTokens(slices.Collect(maps.Values(components))...))
	for name, id := range components {
		errs = append(errs, cp.writeComponentConfig(name, id))
	}
	if cp.admin, err = cp.Config(Admin()); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// writeComponentConfig writes what a component is to reach the API server by.
func (cp *ControlPlane) writeComponentConfig(name string, id Identity) error {
	config, err := cp.Config(id)
	if err != nil {
		return err
	}
	if proxy := cp.Proxy(name); proxy != nil {
		config.Host = "https://" + proxy.Addr()
	}
	return WriteKubeconfig(cp.layout.file(name+".kubeconfig"), config)
}

// writeStages asks KWOK's module for what KWOK is to do.
func (cp *ControlPlane) writeStages(ctx context.Context) error {
	stages, err := exec.CommandContext(ctx, filepath.Join(cp.layout.kwok, "stages")).Output()
	if err != nil {
		return fmt.Errorf("print KWOK's stages: %w", err)
	}
	if err := os.WriteFile(cp.layout.file("stages.yaml"), stages, 0o600); err != nil {
		return fmt.Errorf("write KWOK's stages: %w", err)
	}
	return nil
}

func (cp *ControlPlane) stop() error {
	cp.mutex.Lock()
	processes := slices.Clone(cp.processes)
	cp.mutex.Unlock()
	for _, p := range slices.Backward(processes) {
		p.Kill()
	}
	var errs []error
	for _, proxy := range cp.proxies {
		errs = append(errs, proxy.Close())
	}
	if cp.janitor != nil {
		errs = append(errs, cp.janitor.dismiss())
	}
	return errors.Join(append(errs, cp.ports.release())...)
}
