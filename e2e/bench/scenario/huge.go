package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/bench/figure"
	"github.com/pod-reloader/pod-reloader/e2e/bench/model"
)

// huge: a start on a cluster of the largest size, and what one change costs there. The API server is the model that the
// simulator has, on loopback, since etcd would take half an hour to fill; pod-reloader stamps by itself (--webhook=false).
func huge(ctx context.Context, e *environment) ([]figure.Figure, error) {
	small, err := inModel(ctx, e, e.Huge/100)
	if err != nil {
		return nil, err
	}
	large, err := inModel(ctx, e, e.Huge)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d workloads, %d config objects, simulated API server: ", e.Huge, 2*e.Huge)
	return []figure.Figure{
		{Name: what + "resident after start", Unit: figure.Megabytes, Value: large.resident, Budget: figure.AtMost(1000)},
		{
			Name: what + "caught up", Unit: figure.Seconds, Value: large.caughtUp.Seconds(), Budget: figure.AtMost(60),
			Note: fmt.Sprintf("from the start of the process until %d changes that it missed are new templates", model.Probes),
		},
		{
			Name: what + "one change to new template", Unit: figure.Milliseconds,
			Value: milliseconds(median(large.latencies)), Floor: milliseconds(median(small.latencies)),
			Budget: figure.Times(2), Note: fmt.Sprintf("median of %d; the floor is the same with %d workloads", len(large.latencies), e.Huge/100),
		},
		missedOrDoubled(small.off + large.off),
	}, nil
}

// modelled is what was found on a model of an API server.
type modelled struct {
	// resident is in megabytes.
	resident  float64
	caughtUp  time.Duration
	latencies []time.Duration
	// off is how many writes were too few or too many.
	off int
}

// inModel starts pod-reloader beside so many workloads.
func inModel(ctx context.Context, e *environment, workloads int) (found modelled, err error) {
	m, process, err := e.startModel(ctx, model.Cluster{Workloads: workloads}, settings{})
	if err != nil {
		return modelled{}, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	defer process.Kill()
	found.caughtUp = time.Since(process.began)
	used, err := processorTime(process.PID())
	if err != nil {
		return modelled{}, err
	}
	var resident []int64
	for range e.Looks {
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return modelled{}, err
		}
		bytes, err := process.ResidentMemory()
		if err != nil {
			return modelled{}, err
		}
		resident = append(resident, bytes)
	}
	found.resident = megabytes(median(resident))
	for round := range e.HugeChanges {
		changed := time.Now()
		if err := m.Change(round); err != nil {
			return modelled{}, err
		}
		if err := m.Await(ctx); err != nil {
			return modelled{}, err
		}
		found.latencies = append(found.latencies, time.Since(changed))
	}
	if _, err := process.atRest(ctx, quiet); err != nil {
		return modelled{}, err
	}
	written := m.Written()
	found.off = max(written-model.Probes-e.HugeChanges, model.Probes+e.HugeChanges-written)
	e.say("%d workloads: resident %.1f MB, caught up in %s, with %s of processor time",
		workloads, found.resident, found.caughtUp.Round(time.Millisecond), used.Round(time.Millisecond))
	return found, nil
}
