package act

import (
	"context"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func excludeActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	label := oneOf("label", "ignored", "disabled")
	return []act{
		{
			name: "opt-out", weight: 4, on: anyWorkload, with: []parameter{oneOf("lists", "both", "configmaps", "secrets")},
			words: "user removes the list annotations of {on} ({lists})",
			do:    optOut,
		},
		{
			name: "opt-out-put", weight: 3, on: anyWorkload,
			with: []parameter{
				optional("version", sameVersion, isVersionOrSame, drawVersionOrSame), oneOf("pinned", "false", "true"),
			},
			words: "user replaces {on} by a manifest without any pod-reloader key (version: {version}, resourceVersion given: {pinned})",
			do: func(ctx context.Context, c client, s step) error {
				anyKey := func(key string) bool { return strings.HasPrefix(key, Prefix) }
				return c.replace(ctx, s, anyKey, func(world.Object) {})
			},
		},
		{
			name: "ignore", weight: 3, on: anyWorkload, with: []parameter{label},
			words: "user labels {on} {label}=true",
			do: func(ctx context.Context, c client, s step) error {
				return c.merge(ctx, s.key, "kubectl-label", metadata("labels", world.Object{Prefix + s.text("label"): "true"}))
			},
		},
		{
			// More often than ignore: most histories should not end with workloads left out.
			name: "unignore", weight: 6, on: mostlyAfter(anyWorkload, "ignore", "ignore-put"),
			words: "user removes the labels ignored and disabled of {on}",
			do: func(ctx context.Context, c client, s step) error {
				gone := world.Object{Prefix + "ignored": nil, Prefix + "disabled": nil}
				return c.merge(ctx, s.key, "kubectl-label", metadata("labels", gone))
			},
		},
		{
			name: "ignore-put", weight: 2, on: anyWorkload,
			with: []parameter{
				label, optional("version", sameVersion, isVersionOrSame, drawVersionOrSame),
				number("times", 1, 5, "1", "2", "3"), duration("every", "0s", "200ms", "3s"),
			},
			words: "user replaces {on} by a manifest with label {label}=true, {times} times, every {every} (version: {version})",
			do:    ignorePut,
		},
	}
}

func optOut(ctx context.Context, c client, s step) error {
	gone := world.Object{}
	if s.text("lists") != "secrets" {
		gone[listOfConfigMaps] = nil
	}
	if s.text("lists") != "configmaps" {
		gone[listOfSecrets] = nil
	}
	return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", gone))
}

func ignorePut(ctx context.Context, c client, s step) error {
	for i := range s.number("times") {
		if i > 0 {
			if err := pause(ctx, s.pause("every")); err != nil {
				return err
			}
		}
		err := c.replace(ctx, s, isManaged, func(manifest world.Object) {
			meta := world.Section(manifest, "metadata")
			meta["labels"] = world.With(world.Section(meta, "labels"), "true", Prefix+s.text("label"))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
