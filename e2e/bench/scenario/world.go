package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// stage is a control plane with an installation.
type stage int

const (
	// bare has the API server alone and no gates, for durations: what controllers and pods make of a new template is in
	// neither figure nor floor, nor is what the audit log costs a read.
	bare stage = iota
	// complete has everything, with pod-reloader as shipped, for counts.
	complete
	// loaded is another of that kind, for counts of many changes: those of complete take as long.
	loaded
	// disturbed is another of that kind, in which replicas and the API server end.
	disturbed
	// bulk is like bare, with pod-reloader as shipped but a single replica, for amounts.
	bulk
	// empty has the API server alone, without pod-reloader, for the library that it is built with.
	empty

	stages = iota
)

func (s stage) options() (controlplane.Options, installation.Options) {
	alone := controlplane.Options{Without: []string{controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK}}
	// A replica serves admission for this time after SIGTERM, for the sake of the endpoint. Here it is known at once.
	quickly := "--shutdown-grace-period=300ms"
	switch s {
	case bare:
		alone.Audit.WithoutReads = true
		return alone, installation.Options{Args: []string{"--settle=0s", "--refractory=0s", quickly}}
	case empty:
		return alone, installation.Options{}
	case bulk:
		return alone, installation.Options{Replicas: 1, Args: []string{quickly}}
	default:
		return controlplane.Options{}, installation.Options{Args: []string{quickly}}
	}
}

// crowded are the options where all stages run beside each other: counts depend on writes that are made within the settle time, and on a
// webhook that answers in time, which then needs more of it than as shipped.
func (s stage) crowded(options installation.Options) installation.Options {
	options.Patient = s != disturbed // where replicas end, a write would wait for one
	if s == complete || s == loaded {
		options.Args = append(options.Args, "--settle=3s", "--settle-max=15s")
	}
	return options
}

// world is what a scenario plays in.
type world struct {
	client.Client
	Sizes

	bench Bench
	cp    *controlplane.ControlPlane
	in    *installation.Installation
	// proxy is between pod-reloader and the API server on the complete stage, so that connections can break.
	proxy *controlplane.Proxy
	// name is that of the scenario, and of its namespace.
	name string
	// floors are the programs from e2e/bench/floor that were started.
	floors []*controlplane.Process
	// grown are the clusters of growth, the small one first.
	grown []*grown
	// profiles is the address at which the one replica serves profiles.
	profiles string
}

// set starts what a stage needs.
func (b Bench) set(ctx context.Context, on stage) (*world, error) {
	forControlPlane, forInstallation := on.options()
	if b.AtOnce {
		forInstallation = on.crowded(forInstallation)
	}
	if b.Profiles != "" {
		forControlPlane.Args = map[string][]string{controlplane.APIServer: {"--profiling=true"}}
	}
	cp, err := controlplane.Start(ctx, forControlPlane)
	if err != nil {
		return nil, err
	}
	w := &world{Client: cp.Client(), Sizes: b.Sizes, bench: b, cp: cp}
	if on == empty {
		return w, nil
	}
	if on == complete {
		if w.proxy, err = controlplane.NewProxy(cp.Address()); err != nil {
			return nil, errors.Join(err, w.close())
		}
		forInstallation.Connect = w.throughProxy
	}
	profiler, err := w.profiler()
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	if len(profiler) > 0 {
		forInstallation.Replicas = 1
		forInstallation.Args = append(forInstallation.Args, profiler...)
	}
	if w.in, err = installation.Start(ctx, cp, forInstallation); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) throughProxy(config *rest.Config) { config.Host = "https://" + w.proxy.Addr() }

func (w *world) close() error {
	var errs []error
	for _, g := range w.grown {
		errs = append(errs, g.end())
	}
	if w.in != nil {
		errs = append(errs, w.in.Close())
	}
	if w.proxy != nil {
		errs = append(errs, w.proxy.Close())
	}
	return errors.Join(append(errs, w.cp.Stop())...)
}

// say writes a line of progress.
func (w *world) say(format string, args ...any) {
	fmt.Fprintf(w.bench.Progress, "%s: %s\n", w.name, fmt.Sprintf(format, args...))
}

// enter creates the scenario's namespace and watches the workloads in it.
func (w *world) enter(ctx context.Context) (*observe.Watcher, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	if err := w.Create(ctx, namespace); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", w.name, err)
	}
	return observe.Start(ctx, w.cp.Admin(), w.name)
}

// identityOf is that of a program from e2e/bench/floor: it may do everything, and is audited as pod-reloader is.
func identityOf(floor string) controlplane.Identity {
	return controlplane.Identity{User: "floor:" + floor, Groups: controlplane.Admin().Groups}
}

// with runs a scenario with replicas that have further flags, in place of the others.
func (w *world) with(ctx context.Context, args []string, run func() error) error {
	if err := w.replaceReplicas(ctx, args); err != nil {
		return err
	}
	return errors.Join(run(), w.replaceReplicas(ctx, nil))
}

// replaceReplicas is a rolling update to other flags. A replica that serves profiles ends before the next one needs its address.
func (w *world) replaceReplicas(ctx context.Context, args []string) error {
	for _, old := range w.in.Replicas() {
		add := func() error {
			_, err := w.in.AddReplica(ctx, installation.ReplicaOptions{Args: args})
			return err
		}
		remove := func() error { return w.in.RemoveReplica(ctx, old) }
		steps := []func() error{add, remove}
		if w.profiles != "" {
			steps = []func() error{remove, add}
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// startFloor builds and starts a program from e2e/bench/floor.
func (w *world) startFloor(ctx context.Context, name, address string, args ...string) error {
	path, err := installation.Build(ctx, filepath.Join("e2e", "bench", "floor", name))
	if err != nil {
		return err
	}
	var ready func(context.Context) error
	if address != "" {
		ready = func(ctx context.Context) error { return listening(ctx, address) }
	}
	process, err := w.cp.StartProcess(ctx, controlplane.Program{Name: numbered(w.name+"-"+name, len(w.floors)), Path: path, Args: args, Ready: ready})
	if err == nil {
		w.floors = append(w.floors, process)
	}
	return err
}

// endFloors ends the programs of a scenario: they have no part in the next one.
func (w *world) endFloors() {
	for _, floor := range w.floors {
		floor.Kill()
	}
	w.floors = nil
}

func listening(ctx context.Context, address string) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// kubeconfig writes one for a program from e2e/bench/floor.
func (w *world) kubeconfig(floor string) (string, error) {
	path := filepath.Join(w.cp.Dir(), w.name+"-"+floor+".kubeconfig")
	return path, w.cp.WriteKubeconfig(path, identityOf(floor))
}

// temporary makes a directory that goes with the control plane.
func (w *world) temporary(name string) (string, error) {
	directory := filepath.Join(w.cp.Dir(), w.name+"-"+name)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", fmt.Errorf("make a directory: %w", err)
	}
	return directory, nil
}

// address is a free one on loopback.
func (w *world) address() (string, error) {
	port, err := w.cp.FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// parallel calls do for 0 … n-1, some at a time, until one fails.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	const atATime = 16
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// await asks until the answer is nil, for so long at most.
func await(ctx context.Context, what string, every, atMost time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return poll.Until(ctx, what, every, ask)
}

// pause lets time pass: for the aftermath of one measurement to be over when the next begins. No result depends on it.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// made returns pod-reloader's requests since a mark, without those of the leader's lease, which come at any time.
func (w *world) made(ctx context.Context, mark controlplane.Mark) (controlplane.Requests, error) {
	all, err := w.cp.Audit().Since(ctx, mark)
	if err != nil {
		return nil, err
	}
	return all.By(w.in.Identity().User).Where(func(r controlplane.Request) bool { return r.Resource != "leases" }), nil
}

// idle waits until nothing that pod-reloader asked of the API server has been audited for a while: its Events are written
// too.
func (w *world) idle(ctx context.Context) error {
	const silence = 150 * time.Millisecond
	return await(ctx, "pod-reloader to be idle", time.Millisecond, time.Minute, func(ctx context.Context) error {
		mark, err := w.cp.Audit().Mark()
		if err != nil {
			return err
		}
		if err := pause(ctx, silence); err != nil {
			return err
		}
		requests, err := w.made(ctx, mark)
		if err != nil {
			return err
		}
		if len(requests) > 0 {
			return fmt.Errorf("it asked for %v", requests.Count())
		}
		return nil
	})
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
