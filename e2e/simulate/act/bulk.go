package act

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// annotationLimit is how many bytes the annotations of one object may have, keys and values.
	annotationLimit = 256 << 10
	// bulk is an annotation of others that needs much of that.
	bulk = "example.com/bulk"
	// mostNames is as many as fit into one annotation.
	mostNames = 30_000
)

// Slow returns the acts that make a history slow, since objects become large.
func Slow() []string {
	var names []string
	for _, a := range bulkActs() {
		names = append(names, a.name)
	}
	return names
}

// bulkActs bring annotations to the limit of the API server. They are rare and soon over.
func bulkActs() []act {
	anyWorkload := onWorkload(workloadResources()...)
	return []act{
		{
			name: "fill-annotations", weight: 1, on: anyWorkload,
			with: []parameter{
				// The program leaves 2560 bytes of a workload to the Deployment controller.
				oneOf("where", "workload", "workload", "template"), number("left", 0, annotationLimit, "0", "60", "120", "300", "2948", "4048", "30000"),
				duration("for", "5s", "15s", "1m"),
			},
			words: "user fills the annotations of {on} ({where}), managed ones not counted, up to {left} bytes below the limit, and empties them after {for}",
			do:    fillAnnotations,
		},
		{
			name: "long-lists", weight: 1, on: anyWorkload, with: []parameter{required("n", isNumber(1, mostNames), drawNames)},
			words: "user lists {n} ConfigMaps of {on}, most of which do not exist",
			do: func(ctx context.Context, c client, s step) error {
				p, err := planOf(s.key)
				if err != nil {
					return err
				}
				return c.merge(ctx, s.key, "kubectl-annotate", metadata("annotations", world.Object{listOfConfigMaps: longList(p.configMaps, s.number("n"))}))
			},
		},
	}
}

// annotations is a merge patch of those of the workload, or of its template.
func (s step) annotations(values world.Object) world.Object {
	patch := metadata("annotations", values)
	if s.text("where") == "template" {
		return inTemplate(s.key.Resource, patch)
	}
	return patch
}

func fillAnnotations(ctx context.Context, c client, s step) error {
	live, err := c.get(ctx, s.key)
	if err != nil {
		return err
	}
	annotations := world.Annotations(live)
	if s.text("where") == "template" {
		annotations = world.Annotations(templateOf(s.key.Resource, live))
	}
	size := len(bulk)
	for key, value := range annotations {
		if text, ok := value.(string); ok && key != bulk && (key == Referents || !isManaged(key)) {
			size += len(key) + len(text)
		}
	}
	free := annotationLimit - s.number("left") - size
	if free < 0 {
		return skip("%s has annotations of %d bytes", s.key, size)
	}
	filled := c.merge(ctx, s.key, "kubectl-annotate", s.annotations(world.Object{bulk: strings.Repeat("x", free)}))
	if filled != nil {
		return filled
	}
	if err := pause(ctx, s.pause("for")); err != nil {
		return err
	}
	return c.merge(ctx, s.key, "kubectl-annotate", s.annotations(world.Object{bulk: nil}))
}

// drawNames draws how many names a long list has: the most of all costs the simulator seconds.
func drawNames(r *rand.Rand, _ world.Key) string {
	if r.IntN(20) == 0 {
		return strconv.Itoa(mostNames)
	}
	return []string{"20", "20", "20", "200", "1500"}[r.IntN(5)]
}

// longList has n names, those of a list first.
func longList(list string, n int) string {
	names := world.Items(list)
	for i := len(names); i < n; i++ {
		names = append(names, fmt.Sprintf("g%05d", i))
	}
	return strings.Join(names[:n], ",")
}
