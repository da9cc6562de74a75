package referent_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// tangled are objects that can refer to any others of their resource, as children and as parents.
func tangled() referent.Definition {
	d := loose()
	d.Referrers = []referent.EdgeDefinition{{Resource: "a", Name: "spec.below[*]"}}
	return d
}

func TestReachingIsWhatHasATargetBelow(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, tangled())
		const nodes = 12
		names := func() []any {
			some := make([]any, random.IntN(3))
			for i := range some {
				some[i] = fmt.Sprint(random.IntN(nodes))
			}
			return some
		}
		for i := range nodes - 2 { // two exist at most because something refers to them
			w.set(fmt.Sprint("a/", i), map[string]any{"to": names(), "below": names()})
		}
		w.Evaluate()
		targets := keys(fmt.Sprint("a/", random.IntN(nodes)), fmt.Sprint("a/", random.IntN(nodes)), "a/unknown")
		isTarget := func(key referent.Key) bool { return slices.Contains(targets, key) }
		roots := keys("a/unknown")
		for i := range nodes {
			if random.IntN(2) == 0 {
				roots = append(roots, key(fmt.Sprint("a/", i)))
			}
		}
		reaching := w.LeadingTo(isTarget, roots...)
		for _, root := range roots {
			require.Equal(t, slices.ContainsFunc(w.Below(root), isTarget), slices.Contains(reaching, root), "seed %d: %s", seed, root)
		}
		for _, key := range reaching {
			require.Contains(t, roots, key, "seed %d", seed)
		}
	}
}

// A workload can name 1,000 resources above the same objects.
func TestReachingLooksAtEachObjectOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loose())
	const layers, wide = 5, 20
	layer := func(of int) []string {
		names := make([]string, wide)
		for i := range names {
			names[i] = fmt.Sprintf("l%d-%d", of, i)
		}
		return names
	}
	var roots []referent.Key
	for of := range layers {
		for _, name := range layer(of) {
			w.loose(name, layer(of+1)...)
			if of == 0 {
				roots = append(roots, key("a/"+name))
			}
		}
	}
	w.Evaluate()
	looked := 0
	reaching := w.LeadingTo(func(k referent.Key) bool {
		looked++
		return k == key("a/l3-7")
	}, roots...)
	assert.Equal(t, w.Len(), looked)
	assert.Len(t, reaching, wide)
}

// It is asked for under a lock, for which the next change waits.
func TestReferredAllocatesNothingForEachNode(t *testing.T) { //nolint:paralleltest // it counts allocations
	w := newWorld(t, tangled())
	const count = 500
	var names []any
	for i := range count {
		names = append(names, fmt.Sprint(i))
		w.set(fmt.Sprint("a/", i), map[string]any{"below": []any{"all"}})
	}
	w.set("a/root", map[string]any{"to": names})
	w.Evaluate()
	require.Len(t, w.Referred(), count, "nothing depends on the root, nor on what is missing")
	assert.Less(t, testing.AllocsPerRun(10, func() { w.Referred() }), 50.0)
}
