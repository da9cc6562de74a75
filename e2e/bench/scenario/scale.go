package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// scale: a start on a big cluster, on which a ConfigMap has changed in the meantime.
func scale(ctx context.Context, e *environment) ([]figure.Figure, error) {
	if err := populate(ctx, e); err != nil {
		return nil, err
	}
	loaded, err := e.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	// A namespace of its own, so that the watcher need not hold all the workloads.
	e.name = "scale-probe"
	if err := e.createWatchedNamespace(ctx); err != nil {
		return nil, err
	}
	probe, err := e.deployWithConfig(ctx, deployment{name: "probe", configMaps: []string{"probe"}})
	if err != nil {
		return nil, err
	}
	if err := e.installation.StopAll(ctx); err != nil {
		return nil, err
	}
	if err := e.change(ctx, "probe", 1); err != nil {
		return nil, err
	}
	start, err := e.measureStart(ctx, probe, 1)
	if err != nil {
		return nil, err
	}
	started, err := e.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d workloads, %d config objects: ", e.Deployments, 2*e.Deployments)
	return []figure.Figure{
		{Name: what + "resident", Unit: figure.Megabytes, Value: loaded, Budget: figure.AtMost(150), Note: "after all of them were created"},
		{Name: what + "resident after start", Unit: figure.Megabytes, Value: started, Budget: figure.AtMost(150)},
		{Name: what + "ready", Unit: figure.Seconds, Value: start.ready.Seconds(), Budget: figure.AtMost(5), Note: "probe and caches"},
		{
			Name: what + "caught up", Unit: figure.Seconds, Value: start.caughtUp.Seconds(), Budget: figure.AtMost(15),
			Note: "from the start of the process until the change it missed is a new template",
		},
		missedOrDoubled(e.unequal([]observe.Workload{probe}, 1)),
	}, nil
}

// populate creates the big cluster: as many ConfigMaps as workloads, and as many Secrets.
func populate(ctx context.Context, e *environment) error {
	if err := e.createNamespace(ctx, e.name); err != nil {
		return err
	}
	began := time.Now()
	err := parallel(ctx, e.Deployments, func(ctx context.Context, i int) error {
		_, err := e.deployWithConfig(ctx, deployment{
			name: numbered("web", i), configMaps: []string{numbered("config", i)}, secrets: []string{numbered("secret", i)},
		})
		return err
	})
	e.say("%d workloads and their configuration created in %s", e.Deployments, time.Since(began).Round(time.Second))
	return err
}
