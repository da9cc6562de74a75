package scenario

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

const (
	// busy is the ConfigMap that is written all the time.
	busy = "busy"
	// writesASecond is how many writes are attempted, each writersOfBusy-th of them by one writer. An API server that is slower gets fewer.
	writesASecond, writersOfBusy = 500, 8
	// slowest is the least rate at which the figure says something: a machine that is slower hammers less.
	slowest = 200
	// gates is for how long the settings as shipped may put a reload off: --settle-max and --refractory.
	gates = 10 * time.Second
)

// constantChange: one ConfigMap is written all the time, many workloads depend on it.
func constantChange(ctx context.Context, e *environment) ([]figure.Figure, error) {
	if err := e.createConfigMap(ctx, busy); err != nil {
		return nil, err
	}
	all := make([]observe.Workload, e.Constant)
	err := parallel(ctx, len(all), func(ctx context.Context, i int) (err error) {
		all[i], err = e.deploy(ctx, deployment{name: fmt.Sprintf("web-%d", i), configMaps: []string{busy}})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := e.awaitSettled(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	written, err := writeBusy(ctx, e)
	if err != nil {
		return nil, err
	}
	ended := time.Now()
	if err := e.watcher.Sync(ctx); err != nil {
		return nil, err
	}
	longest, restarts := pauses(e.watcher, all, began, ended)
	rate := float64(written) / ended.Sub(began).Seconds()
	e.say("%.0f writes a second, %.1f restarts of each of %d workloads in %s", rate, float64(restarts)/float64(len(all)), len(all), e.ConstantFor)
	return []figure.Figure{
		{
			Name: "longest time without a restart", Unit: figure.Seconds, Value: longest.Seconds(), Budget: figure.AtMost(gates.Seconds()),
			Note: fmt.Sprintf("%d workloads; --settle-max and --refractory are 5 s each", len(all)),
		},
		{Name: "writes of the ConfigMap", Unit: figure.PerSecond, Value: rate, Budget: figure.AtLeast(slowest), Note: fmt.Sprintf("%d are attempted", writesASecond)},
	}, nil
}

// pauses returns the longest time that one of some workloads was not restarted, and how often all were, within a time.
func pauses(watcher *observe.Watcher, all []observe.Workload, began, ended time.Time) (longest time.Duration, restarts int) {
	for _, workload := range all {
		last := began
		for _, change := range watcher.Changes(workload) {
			longest, last = max(longest, change.Time.Sub(last)), change.Time
			restarts++
		}
		longest = max(longest, ended.Sub(last))
	}
	return longest, restarts
}

// writeBusy writes for the time of the scenario and returns the number of writes.
func writeBusy(ctx context.Context, e *environment) (int64, error) {
	var written atomic.Int64
	var failure error
	var once sync.Once
	var writers sync.WaitGroup
	until := time.Now().Add(e.ConstantFor)
	for writer := range writersOfBusy {
		writers.Go(func() {
			ticker := time.NewTicker(time.Second * writersOfBusy / writesASecond)
			defer ticker.Stop()
			for n := 0; time.Now().Before(until); n++ {
				<-ticker.C
				if err := e.merge(ctx, &corev1.ConfigMap{}, busy, fmt.Sprintf(`{"data":{"key":"%d of %d"}}`, n, writer)); err != nil {
					once.Do(func() { failure = err })
					return
				}
				written.Add(1)
			}
		})
	}
	writers.Wait()
	return written.Load(), failure
}
