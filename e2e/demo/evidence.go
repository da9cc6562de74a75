package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/demo/narration"
	"github.com/pod-reloader/pod-reloader/e2e/demo/scorecard"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// interval is how often a condition is looked at that the observer does not see.
const interval = 50 * time.Millisecond

// awaitEvents waits for n Events about reloads: they are written a moment after the rollout.
func (d *demo) awaitEvents(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, d.options.patience)
	defer cancel()
	return poll.Until(ctx, "the Events", interval, func(ctx context.Context) error {
		all := &eventsv1.EventList{}
		if err := d.cp.Client().List(ctx, all, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list Events: %w", err)
		}
		reloads := slices.DeleteFunc(all.Items, func(e eventsv1.Event) bool { return e.Reason != "Reloaded" })
		if len(reloads) < n {
			return fmt.Errorf("%d of %d were written", len(reloads), n)
		}
		return nil
	})
}

// replicaSets are how many each of some Deployments must have had at the end: a second witness, kept by Kubernetes.
var replicaSets = []struct {
	of   observe.Workload
	want int
}{
	{cart, 2}, {catalog, 2}, {web, 3}, {search, 1},
}

// awaitReplicaSets waits until those that must be there are; their controller works after us.
func (d *demo) awaitReplicaSets(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.options.patience)
	defer cancel()
	return d.watcher.Await(ctx, "the ReplicaSets", func() error {
		for _, r := range replicaSets {
			if have := d.watcher.ReplicaSets(r.of); have < r.want {
				return fmt.Errorf("%s has had %d of %d", r.of, have, r.want)
			}
		}
		return nil
	})
}

func (d *demo) countReplicaSets() scorecard.Finding {
	f := scorecard.Finding{Kept: true}
	var counts []string
	for _, r := range replicaSets {
		have := d.watcher.ReplicaSets(r.of)
		counts = append(counts, strconv.Itoa(have))
		f.Kept = f.Kept && have == r.want
	}
	f.Observed = strings.Join(counts, ", ")
	return f
}

// configuration is watched too, for what is in it, so that the demo knows when it changed.
func configuration() []observe.Kind {
	core := schema.GroupVersion{Version: "v1"}
	return []observe.Kind{
		{Name: "ConfigMap", Resource: core.WithResource("configmaps"), Template: "data"},
		{Name: "Secret", Resource: core.WithResource("secrets"), Template: "data"},
	}
}

// catalogConfiguration is what the Deployment catalog depends on.
func catalogConfiguration() []observe.Workload {
	var objects []observe.Workload
	for n := range 10 {
		kind := "ConfigMap"
		if n >= 6 {
			kind = "Secret"
		}
		objects = append(objects, observe.Workload{Kind: kind, Namespace: namespace, Name: fmt.Sprintf("catalog-%d", n)})
	}
	return objects
}

// settle is pod-reloader's default: changes with less between them are one.
const settle = time.Second

// burst says how close to each other the changes in some windows came.
func (d *demo) burst(windows []window) string {
	var times []time.Time
	for _, w := range windows {
		for _, c := range d.changes(w) {
			times = append(times, c.Time)
		}
	}
	if len(times) == 0 {
		return "Nothing has changed."
	}
	slices.SortFunc(times, time.Time.Compare)
	gap := time.Duration(0)
	for n := 1; n < len(times); n++ {
		gap = max(gap, times[n].Sub(times[n-1]))
	}
	text := fmt.Sprintf("%d objects changed within %s.", len(times), narration.Seconds(times[len(times)-1].Sub(times[0])))
	if gap >= settle {
		text += fmt.Sprintf(" Between two of them passed %s: this machine is too busy to change them at once, and one rollout "+
			"cannot be expected.", narration.Seconds(gap))
	}
	return text
}
