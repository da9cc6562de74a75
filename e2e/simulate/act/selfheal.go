package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// SelfHeal is the act of a controller that answers each change of a workload by its manifest, as Argo CD does with selfHeal, or an operator.
// It has no weight: simulate draws it from a random stream of its own.
const SelfHeal = "self-heal"

// The ways of a controller to write its manifest.
const (
	healByApply = "apply"
	healByPut   = "put"
	// HealOnServer needs an API server that tracks field managers.
	HealOnServer = "ssa"
	// HealBy is the parameter that has one of these.
	HealBy = "how"
)

func selfHealActs() []act {
	return []act{{
		name: SelfHeal, on: onWorkload(builtinResources()...),
		with: append([]parameter{
			versionParameter(), required(HealBy, isOneOf(healByApply, HealOnServer, healByPut), pick(healByApply, HealOnServer, healByPut, healByPut)),
			duration("for", "10s", "30s", "30s", "45s"), duration("every", "100ms", "500ms", "1s"),
		}, listParameters(8)...),
		words: "for {for}, a controller answers each change of {on} that it sees, every {every}, by version {version} of its manifest ({how})" +
			"[, configmaps {configmaps|q}][, secrets {secrets|q}]",
		do: selfHeal,
	}}
}

func selfHeal(ctx context.Context, c client, s step) error {
	manifest, err := s.manifest()
	if err != nil {
		return err
	}
	answered := ""
	for until := time.Now().Add(s.pause("for")); ; {
		live, err := c.get(ctx, s.key)
		if err != nil {
			return err
		}
		if seen := observedBy(live); seen != answered {
			err := c.heal(ctx, s, manifest, live)
			switch {
			case err == nil:
				answered = seen
			case errors.Is(err, ErrSkipped):
				return err
			}
		}
		if !time.Now().Before(until) {
			return nil
		}
		if err := pause(ctx, max(s.pause("every"), 10*time.Millisecond)); err != nil {
			return err
		}
	}
}

// observedBy is what the controller compares: the status is not of its manifest.
func observedBy(live world.Object) string {
	meta := world.Section(live, "metadata")
	return fmt.Sprint(meta["generation"], meta["labels"], meta["annotations"])
}

// heal writes the manifest once.
func (c client) heal(ctx context.Context, s step, manifest, live world.Object) error {
	switch s.text(HealBy) {
	case healByApply:
		return c.apply(ctx, s.key, manifest)
	case HealOnServer:
		return c.applyOnServer(ctx, s.key, "argocd", true, manifest)
	}
	annotations := without(world.Annotations(live), func(key string) bool { return !isOfServer(key) })
	maps.Copy(annotations, world.Annotations(manifest))
	meta := world.With(world.Section(manifest, "metadata"), annotations, "annotations")
	return c.put(ctx, s.key, "operator", world.With(manifest, meta, "metadata"))
}
