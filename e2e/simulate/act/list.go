package act

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func listActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	return []act{
		{
			name: "edit-lists", weight: 6, on: anyWorkload,
			with: []parameter{
				optional("configmaps", omit, isText, drawConfigMapList),
				optional("secrets", omit, isText, seldom(2, drawSecretList)),
			},
			words: "user sets the lists of {on}:[ configmaps {configmaps|q}][ secrets {secrets|q}]",
			agree: func(s step) error {
				if !s.has("configmaps") && !s.has("secrets") {
					return errors.New("with.configmaps, with.secrets: one of them must be given")
				}
				return nil
			},
			do: func(ctx context.Context, c client, s step) error {
				lists := world.Object{}
				if s.has("configmaps") {
					lists[listOfConfigMaps] = s.text("configmaps")
				}
				if s.has("secrets") {
					lists[listOfSecrets] = s.text("secrets")
				}
				return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", lists))
			},
		},
		{
			name: "reorder-lists", weight: 5, on: anyWorkload, with: []parameter{oneOf("how", "reverse", "spaces", "duplicates")},
			words: "user writes the lists of {on} differently ({how}) with the same names",
			do:    reorderLists,
		},
		{
			name: "opt-in", weight: 5, on: mostlyAfter(anyWorkload, "opt-out", "opt-out-put"),
			words: "user gives {on} the lists of its manifest",
			do:    optIn,
		},
		{
			name: "misspell-lists", weight: 2, on: anyWorkload,
			with: []parameter{
				oneOf("how", "case", "singular", "on-template", "impossible-name"),
				required("value", isText, pick("app", "db", "app,extra")),
			},
			words: "user adds {value|q} to the lists of {on} in a wrong way ({how})",
			do:    misspellLists,
		},
	}
}

// The names that are drawn for lists; ghost never exists.

func drawConfigMapList(r *rand.Rand, _ world.Key) string {
	return drawGeneratedList(r, []string{"app", "extra", "late", "ghost"})
}

func drawSecretList(r *rand.Rand, _ world.Key) string {
	return drawGeneratedList(r, []string{"db", "tls", "ghost"})
}

// drawGeneratedList draws some of the names in any order, written in one of the ways that a user may write a list.
func drawGeneratedList(r *rand.Rand, names []string) string {
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	text := ""
	for i, name := range names[:r.IntN(len(names)+1)] {
		if i > 0 {
			text += []string{",", ",", ", ", " , ", ",,"}[r.IntN(5)]
		}
		text += name
	}
	return text
}

// reorderLists changes how the lists are written, not which names they have.
func reorderLists(ctx context.Context, c client, s step) error {
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	lists := world.Object{}
	for _, key := range []string{listOfConfigMaps, listOfSecrets} {
		if value, ok := world.Annotations(live)[key].(string); ok {
			lists[key] = rewritten(value, s.text("how"))
		}
	}
	if len(lists) == 0 {
		return skip("%s has no lists", s.key)
	}
	return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", lists))
}

func rewritten(list, how string) string {
	items := world.Items(list)
	switch how {
	case "reverse":
		slices.Reverse(items)
		return strings.Join(items, ",")
	case "spaces":
		return "  " + strings.Join(items, " ,  ") + " ,"
	}
	return strings.Join(append(items, items...), ", ")
}

func optIn(ctx context.Context, c client, s step) error {
	manifest, err := workloadManifest(s.key, firstVersion)
	if err != nil {
		return err
	}
	lists := without(world.Annotations(manifest), func(key string) bool { return !isList(key) })
	return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", lists))
}

func misspellLists(ctx context.Context, c client, s step) error {
	annotations := world.Object{}
	switch s.text("how") {
	case "case":
		annotations[Prefix+"configMaps"] = s.text("value")
	case "singular":
		annotations[Prefix+"configmap"] = s.text("value")
	case "on-template":
		template := metadata("annotations", world.Object{listOfConfigMaps: s.text("value")})
		return c.merge(ctx, s.key, "kubectl-patch", inTemplate(s.key.Resource, template))
	default:
		live, err := c.get(ctx, s.key)
		if err != nil {
			return err
		}
		old, _ := world.Annotations(live)[listOfConfigMaps].(string)
		annotations[listOfConfigMaps] = strings.TrimPrefix(old+",Not_A.Name!", ",")
	}
	return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", annotations))
}
