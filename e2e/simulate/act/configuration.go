package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The acts on the structured configuration of pod-reloader.
const (
	WriteConfiguration  = "write-configuration"
	DeleteConfiguration = "delete-configuration"
)

// Configuration is the name of the ConfigMap in System with the structured configuration.
const Configuration = "configuration"

func configurationKey() world.Key {
	return world.Key{Resource: world.ConfigMaps, Namespace: System, Name: Configuration}
}

const (
	configurationHead = "apiVersion: pod-reloader.io/v1alpha1\nkind: Configuration\n"
	rolloutKind       = configurationHead + "workloadKinds:\n- apiVersion: argoproj.io/v1alpha1\n  kind: Rollout\n  template: "
)

// configurations are the texts that a configuration may have, by what they say. An empty text means that the key is missing.
func configurations() map[string]string {
	return map[string]string{
		"rollouts":      rolloutKind + "spec.template\n",
		"nothing":       configurationHead,
		"no YAML":       configurationHead + "workloadKinds: [",
		"unknown field": rolloutKind + "spec.template\n  plural: rollouts\n",
		"other version": "apiVersion: pod-reloader.io/v9\nkind: Configuration\n",
		"wrong path":    rolloutKind + "status.template\n",
		"other path":    rolloutKind + "spec.pods\n",
		"no key":        "",
	}
}

func configurationActs() []act {
	on := target{
		parse: func(on string) (world.Key, error) {
			if on != configurationKey().String() {
				return world.Key{}, fmt.Errorf("%q is not %s", on, configurationKey())
			}
			return configurationKey(), nil
		},
		draw: func(*rand.Rand, []history.Step) string { return configurationKey().String() },
	}
	return []act{
		{
			name: WriteConfiguration, weight: 8, on: on,
			with: []parameter{required("says", isOneOf(slices.Sorted(maps.Keys(configurations()))...),
				// Most histories should end with a valid one.
				pick("rollouts", "rollouts", "rollouts", "rollouts", "nothing", "nothing", "no YAML", "unknown field", "other version", "wrong path", "other path", "no key"))},
			words: "user writes the configuration of pod-reloader ({on}): {says}",
			do:    writeConfiguration,
		},
		{
			name: DeleteConfiguration, weight: 1, on: on,
			words: "user deletes the configuration of pod-reloader ({on})",
			do:    func(ctx context.Context, c client, s step) error { return c.delete(ctx, s.key) },
		},
	}
}

func writeConfiguration(ctx context.Context, c client, s step) error {
	data := world.Object{"config.yaml": nil, "note": s.text("says")}
	if text := configurations()[s.text("says")]; text != "" {
		data["config.yaml"] = text
	}
	err := c.merge(ctx, s.key, "kubectl-patch", world.Object{"data": data})
	if !errors.Is(err, ErrSkipped) {
		return err
	}
	maps.DeleteFunc(data, func(_ string, value any) bool { return value == nil })
	return c.create(ctx, s.key, "kubectl-create", world.Object{
		"apiVersion": "v1", "kind": "ConfigMap", "data": data,
		"metadata": world.Object{"name": s.key.Name, "namespace": s.key.Namespace},
	})
}
