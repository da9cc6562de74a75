package act

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func managedActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	return []act{
		{
			name: "strip-annotations", weight: 4, on: anyWorkload,
			with:  []parameter{number("times", 1, 100, "1", "1", "1", "3", "8"), duration("every", "0s", "500ms", "2s")},
			words: "an operator strips the managed annotations of {on}, {times} times, every {every}",
			do:    strip,
		},
		{
			name: "edit-managed-annotation", weight: 4, on: anyWorkload,
			with:  []parameter{managedParameter(), required("value", isText, drawGarbage)},
			words: "user sets the managed annotation {annotation} of {on} to {value|q} by hand",
			do: func(ctx context.Context, c client, s step) error {
				return editManaged(ctx, c, s, s.text("value"))
			},
		},
		{
			name: "remove-managed-annotation", weight: 2, on: anyWorkload,
			with:  []parameter{managedParameter()},
			words: "user removes the managed annotation {annotation} of {on}",
			do:    func(ctx context.Context, c client, s step) error { return editManaged(ctx, c, s, nil) },
		},
	}
}

// onTemplate begins a managed annotation of the pod template. What else is written there, also below our prefix, is the user's.
const onTemplate = "template/"

func managedParameter() parameter {
	names := []string{onTemplate + "config-hash", onTemplate + "config-restart", "config-hash", "config-record", "last-reload"}
	return required("annotation", isOneOf(names...), pick(names...))
}

// strip removes all managed annotations and the begin of a pause, the user's lists stay.
func strip(ctx context.Context, c client, s step) error {
	removed := false
	for i := range s.number("times") {
		if i > 0 {
			if err := pause(ctx, s.pause("every")); err != nil {
				return err
			}
		}
		err := c.stripOnce(ctx, s.key)
		if err != nil && !errors.Is(err, ErrSkipped) {
			return err
		}
		removed = removed || err == nil
	}
	if !removed {
		return skip("%s has no managed annotations", s.key)
	}
	return nil
}

func (c client) stripOnce(ctx context.Context, key world.Key) error {
	live, err := c.get(ctx, key)
	if err != nil {
		return err
	}
	onWorkload := removal(world.Annotations(live))
	ofTemplate := removal(world.Annotations(templateOf(key.Resource, live)))
	if len(onWorkload)+len(ofTemplate) == 0 {
		return skip("%s has no managed annotations", key)
	}
	body := world.Object{}
	if len(ofTemplate) > 0 {
		body = inTemplate(key.Resource, metadata("annotations", ofTemplate))
	}
	if len(onWorkload) > 0 {
		maps.Copy(body, metadata("annotations", onWorkload))
	}
	return c.merge(ctx, key, "operator", body)
}

// removal is a merge patch that removes the managed ones among some annotations, and the begin of a pause.
func removal(annotations world.Object) world.Object {
	gone := world.Object{}
	for key := range annotations {
		if isManaged(key) || key == pausedAt {
			gone[key] = nil
		}
	}
	return gone
}

func drawGarbage(r *rand.Rand, on world.Key) string {
	switch r.IntN(5) {
	case 0:
		return ""
	case 1:
		return drawDigest(r, on)
	case 2:
		return `{"time":"2035-01-01T00:00:00Z","hash":"` + drawDigest(r, on) + `","cause":"config-change"}`
	case 3:
		return "v9:" + drawDigest(r, on) + ":0011aabb:configmap/app=0123456789abcdef@1"
	}
	return "garbage"
}

func editManaged(ctx context.Context, c client, s step, value any) error {
	name, inside := strings.CutPrefix(s.text("annotation"), onTemplate)
	body := metadata("annotations", world.Object{Prefix + name: value})
	if inside {
		body = inTemplate(s.key.Resource, body)
	}
	return c.merge(ctx, s.key, "kubectl-annotate", body)
}
