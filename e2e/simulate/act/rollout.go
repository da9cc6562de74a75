package act

import (
	"context"
	"maps"
	"math/rand/v2"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// CreateRollout names the act that makes a Rollout. Only after it other acts are done to one: target.go looks for it among the
// earlier steps, so that histories without one need no API server that serves the kind.
const CreateRollout = "create-rollout"

// Rollout is the workload of the custom kind.
const Rollout = "rollouts/shop/pay"

// rolloutPlan is that of the Rollout.
func rolloutPlan() plan {
	return plan{
		resource: world.Rollouts, name: "pay", replicas: 2,
		configMaps: "app, extra", secrets: "db",
		envFrom: []source{{world.ConfigMaps, "app", false}},
		volumes: []source{{world.Secrets, "db", true}, {world.ConfigMaps, "extra", true}},
	}
}

// onRollout is the Rollout.
func onRollout() target {
	rollout := onWorkload(world.Rollouts)
	rollout.draw = func(*rand.Rand, []history.Step) string { return Rollout }
	return rollout
}

func rolloutActs() []act {
	return []act{{
		name: CreateRollout, weight: 4, on: onRollout(),
		words: "user creates {on}, a workload of a custom kind",
		do: func(ctx context.Context, c client, s step) error {
			manifest, err := workloadManifest(s.key, firstVersion)
			if err != nil {
				return err
			}
			return unlessThere(s.key, c.createApplied(ctx, s.key, manifest))
		},
	}}
}

// editRollout changes fields of a container by reading and writing the Rollout: a custom resource knows no strategic merge.
func (c client) editRollout(ctx context.Context, key world.Key, container string, fields world.Object) error {
	path := append(world.PodPath(key.Resource.Plural), "spec")
	return c.update(ctx, key, "kubectl-argo-rollouts", func(object world.Object) error {
		one, _ := cut(world.Section(object, path...)["containers"], container)
		if one == nil {
			return skip("%s has no container %s", key, container)
		}
		if set, ok := fields["env"].([]any); ok {
			_, others := cut(one["env"], world.Text(set[0].(world.Object), "name"))
			fields = world.With(fields, append(others, set...), "env")
		}
		maps.Copy(one, fields)
		return nil
	})
}

// undoRollout is "kubectl argo rollouts undo": it brings the template of an earlier ReplicaSet back, and no annotations.
func undoRollout(ctx context.Context, c client, s step, live world.Object) error {
	_, template, err := earlierTemplate(ctx, c, s, live)
	if err != nil {
		return err
	}
	return c.patch(ctx, s.key, "kubectl-argo-rollouts", change{jsonPatch, []any{
		world.Object{"op": "replace", "path": "/spec/template", "value": template},
	}})
}
