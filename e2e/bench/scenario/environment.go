package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// environment is a setup that was started, and what the present scenario has in it. The scenarios of a setup run one after the other.
type environment struct {
	client.Client
	Sizes

	progress     io.Writer
	profiler     profiler
	cp           *controlplane.ControlPlane
	installation *installation.Installation
	// proxy is between pod-reloader and the API server of the complete setup, so that connections can break.
	proxy *controlplane.Proxy
	// grown are the clusters of growth, the small one first.
	grown []*grown

	// name is that of the present scenario, and of its namespace.
	name string
	// watcher watches the workloads of the present scenario.
	watcher *observe.Watcher
	// floors are what the present scenario is compared with.
	floors *floors
}

func (e *environment) close() error {
	var errs []error
	for _, g := range e.grown {
		errs = append(errs, g.end())
	}
	if e.installation != nil {
		errs = append(errs, e.installation.Close())
	}
	if e.proxy != nil {
		errs = append(errs, e.proxy.Close())
	}
	return errors.Join(append(errs, e.cp.Stop())...)
}

// say writes a line of progress.
func (e *environment) say(format string, args ...any) {
	fmt.Fprintf(e.progress, "%s: %s\n", e.name, fmt.Sprintf(format, args...))
}

// createWatchedNamespace creates the scenario's namespace and watches the workloads in it.
func (e *environment) createWatchedNamespace(ctx context.Context) error {
	if err := e.createNamespace(ctx, e.name); err != nil {
		return err
	}
	return e.watch(ctx, e.name)
}

// watch watches the workloads in a namespace, or in all ("").
func (e *environment) watch(ctx context.Context, namespace string) (err error) {
	e.watcher, err = observe.Start(ctx, e.cp.Admin(), namespace)
	return err
}

// begin prepares a scenario.
func (e *environment) begin(scenario string) {
	e.name, e.floors = scenario, &floors{cp: e.cp, scenario: scenario}
}

// end ends what the present scenario has started for itself alone.
func (e *environment) end() {
	if e.watcher != nil {
		e.watcher.Stop()
		e.watcher = nil
	}
	e.floors.stop()
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

// requestsDuring does something and returns pod-reloader's requests meanwhile, without those of the leader's lease, which come at any time.
func (e *environment) requestsDuring(ctx context.Context, do func() error) (controlplane.Requests, error) {
	mark, err := e.cp.Audit().Mark()
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	all, err := e.cp.Audit().Since(ctx, mark)
	if err != nil {
		return nil, err
	}
	return all.By(e.installation.Identity().User).Where(func(r controlplane.Request) bool { return r.Resource != "leases" }), nil
}

// awaitIdle waits until nothing that pod-reloader asked of the API server has been audited for a while: its Events are written
// too.
func (e *environment) awaitIdle(ctx context.Context) error {
	const silence = 150 * time.Millisecond
	return await(ctx, "pod-reloader to be idle", time.Millisecond, time.Minute, func(ctx context.Context) error {
		requests, err := e.requestsDuring(ctx, func() error { return pause(ctx, silence) })
		if err != nil {
			return err
		}
		if len(requests) > 0 {
			return fmt.Errorf("it asked for %v", requests.Count())
		}
		return nil
	})
}

// awaitSettled waits until nothing is left to do, whatever a gate has put off included.
func (e *environment) awaitSettled(ctx context.Context) error {
	if err := e.installation.Quiet(ctx); err != nil {
		return err
	}
	err := await(ctx, "no reload to be due", 50*time.Millisecond, time.Minute, func(ctx context.Context) error {
		metrics, err := e.installation.Metrics(ctx)
		if err != nil {
			return err
		}
		if due := metrics.Sum("pod_reloader_due_reloads"); due > 0 {
			return fmt.Errorf("%v are due", due)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.awaitIdle(ctx)
}

// unequal is how many changes too few or too many workloads have had.
func (e *environment) unequal(workloads []observe.Workload, want int) int {
	off := 0
	for _, workload := range workloads {
		off += max(len(e.watcher.Changes(workload))-want, want-len(e.watcher.Changes(workload)))
	}
	return off
}

// missedOrDoubled is the figure of workloads that changed too rarely or too often.
func missedOrDoubled(off int) figure.Figure {
	return figure.Figure{Name: "missed or doubled", Value: float64(off), Budget: figure.Exactly(0)}
}
