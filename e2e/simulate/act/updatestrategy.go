package act

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The acts about workloads whose pods wait for a user. They have no weight: simulate draws them from a random stream of its own.
const (
	// SetUpdateStrategy sets when the controller of a workload replaces pods.
	SetUpdateStrategy = "set-update-strategy"
	// DeletePod deletes one pod, which the controller makes anew.
	DeletePod = "delete-pod"
)

const (
	onDelete = "OnDelete"
	// rollingUpdate is without parameters, as in many manifests.
	rollingUpdate = "RollingUpdate"
	// partitionTo is followed by the lowest ordinal that is replaced.
	partitionTo = "partition="
)

func updateStrategyActs() []act {
	sets := onWorkload(world.StatefulSets, world.DaemonSets)
	return []act{
		{
			name: SetUpdateStrategy, on: mostlyAfter(sets, SetUpdateStrategy),
			with:  []parameter{required("to", isUpdateStrategy, drawUpdateStrategy)},
			words: "user sets the update strategy of {on} to {to}",
			agree: func(s step) error {
				if s.key.Resource != world.StatefulSets && strings.HasPrefix(s.text("to"), partitionTo) {
					return fmt.Errorf("with.to: %s have no partition", s.key.Resource.Plural)
				}
				return nil
			},
			do: setUpdateStrategy,
		},
		{
			name: DeletePod, on: mostlyAfter(sets, SetUpdateStrategy), with: []parameter{number("pod", 0, 20, "0", "1", "1")},
			words: "user deletes pod {pod} of {on}",
			do:    deletePod,
		},
	}
}

func isUpdateStrategy(value string) error {
	if n, ok := strings.CutPrefix(value, partitionTo); ok {
		return isNumber(0, 20)(n)
	}
	return isOneOf(onDelete, rollingUpdate)(value)
}

func drawUpdateStrategy(r *rand.Rand, on world.Key) string {
	values := []string{onDelete, onDelete, rollingUpdate}
	if on.Resource == world.StatefulSets {
		values = append(values, partitionTo+"0", partitionTo+"1", partitionTo+"1", partitionTo+"2", partitionTo+"3")
	}
	return values[r.IntN(len(values))]
}

// setUpdateStrategy is "kubectl patch".
func setUpdateStrategy(ctx context.Context, c client, s step) error {
	strategy := world.Object{"type": s.text("to"), "rollingUpdate": nil}
	if n, ok := strings.CutPrefix(s.text("to"), partitionTo); ok {
		partition, _ := strconv.Atoi(n) // it was checked
		strategy = world.Object{"type": rollingUpdate, "rollingUpdate": world.Object{"partition": partition}}
	}
	return c.merge(ctx, s.key, "kubectl-patch", world.Object{"spec": world.Object{"updateStrategy": strategy}})
}

// deletePod is "kubectl delete pod". Names of a DaemonSet's pods are random: they go by their nodes.
func deletePod(ctx context.Context, c client, s step) error {
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	pods, err := c.list(ctx, world.Pods, s.key.Namespace, selectorOf(live))
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	uid := world.Text(live, "metadata", "uid")
	pods = slices.DeleteFunc(pods, func(o world.Object) bool { return !ownedBy(o, uid) })
	if len(pods) == 0 {
		return skip("%s has no pods", s.key)
	}
	place := func(o world.Object) string {
		if s.key.Resource == world.DaemonSets {
			return world.Text(o, "spec", "nodeName")
		}
		return world.Text(o, "metadata", "name")
	}
	slices.SortFunc(pods, func(a, b world.Object) int { return cmp.Compare(place(a), place(b)) })
	name := world.Text(pods[s.number("pod")%len(pods)], "metadata", "name")
	return c.delete(ctx, world.Key{Resource: world.Pods, Namespace: s.key.Namespace, Name: name})
}
