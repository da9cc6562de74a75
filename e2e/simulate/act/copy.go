package act

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// copyWorkload is the name of the act that target.go looks for among earlier steps.
const copyWorkload = "copy-workload"

// RecreateWorkload is the act that makes a workload anew.
const RecreateWorkload = "recreate-workload"

func copyActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	return []act{
		{
			name: copyWorkload, weight: 3, on: anyWorkload,
			with:  []parameter{required("to", isWorkloadRef, drawCopy)},
			words: "user exports {on} with all annotations and creates it as {to}",
			agree: func(s step) error { _, err := s.copyTarget(); return err },
			do:    copyTo,
		},
		{
			name: "delete-workload", weight: 1, on: anyWorkload,
			words: "user deletes {on}",
			do:    func(ctx context.Context, c client, s step) error { return c.delete(ctx, s.key) },
		},
		{
			name: RecreateWorkload, weight: 3, on: anyWorkload,
			with: []parameter{
				oneOf("from", "export", "manifest"), optional("version", "1", isNumber(1, 999), versionParameter().draw), pauseParameter(),
				wishParameter(),
			},
			words: "user deletes {on} and creates it from its {from} (version {version}) after {pause}[, with the annotations of Reloader: {asks}]",
			do:    recreateWorkload,
		},
	}
}

func isWorkloadRef(value string) error {
	_, err := parseWorkload(value, workloadResources())
	return err
}

// drawCopy draws another name in the same namespace, or the other namespace.
func drawCopy(r *rand.Rand, on world.Key) string {
	to := on
	if r.IntN(2) == 0 && !strings.HasSuffix(on.Name, copySuffix) {
		to.Name += copySuffix
		return to.String()
	}
	to.Namespace = bank
	if on.Namespace == bank {
		to.Namespace = shop
	}
	return to.String()
}

// copyTarget is what with.to names: another workload of the same kind.
func (s step) copyTarget() (world.Key, error) {
	to, err := parseWorkload(s.text("to"), []world.Resource{s.key.Resource})
	if err != nil {
		return world.Key{}, fmt.Errorf("with.to: %w", err)
	}
	if to == s.key {
		return world.Key{}, fmt.Errorf("with.to: %s is the workload itself", to)
	}
	return to, nil
}

func copyTo(ctx context.Context, c client, s step) error {
	to, err := s.copyTarget()
	if err != nil {
		return err
	}
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	object := renamed(s.key.Resource, exported(live), to)
	return unlessThere(to, c.create(ctx, to, "kubectl-create", object))
}

// renamed gives a workload that was read another name and namespace. The pods get labels of their own, since two
// workloads must not select the same pods.
func renamed(r world.Resource, object world.Object, to world.Key) world.Object {
	meta := world.With(world.With(world.Section(object, "metadata"), to.Name, "name"), to.Namespace, "namespace")
	object = world.With(object, meta, "metadata")
	if selector := world.Section(object, "spec", "selector"); selector != nil {
		labels := world.With(world.Section(selector, "matchLabels"), to.Name, "app")
		object = world.With(object, world.With(world.Section(object, "spec"), world.With(selector, labels, "matchLabels"), "selector"), "spec")
	}
	return world.With(object, to.Name, append(world.PodPath(r.Plural), "metadata", "labels", "app")...)
}

func recreateWorkload(ctx context.Context, c client, s step) error {
	if s.text("from") == "export" {
		return c.recreate(ctx, s, func(world.Object) {})
	}
	manifest, err := workloadManifest(s.key, s.number("version"))
	if err == nil && s.has("asks") {
		manifest, err = asking(s.key, manifest, s.text("asks"))
	}
	if err != nil {
		return err
	}
	if err := c.delete(ctx, s.key); err != nil && !errors.Is(err, ErrSkipped) {
		return err
	}
	if err := pause(ctx, s.pause("pause")); err != nil {
		return err
	}
	return c.createApplied(ctx, s.key, manifest)
}
