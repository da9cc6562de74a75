package referent_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// loose are objects that can refer to any others of their resource.
func loose() referent.Definition {
	return referent.Definition{
		ID: "a", GVR: gvr("a"), Self: referent.SelfDefinition{Rule: referent.SelfNone},
		Refs: []referent.EdgeDefinition{{Resource: "a", Name: "spec.to[*]"}},
	}
}

func (w world) loose(name string, to ...string) {
	w.Helper()
	names := make([]any, len(to))
	for i, name := range to {
		names[i] = name
	}
	w.set("a/"+name, map[string]any{"to": names})
}

func TestCycleIsHeldWithItsPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loose())
	w.loose("top", "b")
	w.loose("b", "c", "leaf")
	w.loose("c", "d")
	w.loose("d", "b", "c")
	w.loose("leaf")
	w.loose("beside", "leaf")
	w.Evaluate()
	for _, name := range []string{"b", "c", "d"} {
		hold := w.Hold(key("a/" + name))
		require.NotNil(t, hold, name)
		assert.Equal(t, referent.Cycle, hold.Reason)
		assert.Equal(t, "a.example.io/b → a.example.io/c → a.example.io/d → a.example.io/b", hold.Detail)
		assert.Equal(t, key("a/"+name), hold.Node)
	}
	top := w.Hold(key("a/top"))
	require.NotNil(t, top)
	assert.Equal(t, key("a/b"), top.Node)
	assert.Nil(t, w.Hold(key("a/leaf")))
	assert.Nil(t, w.Hold(key("a/beside")), "what is not above the cycle is not held")

	w.loose("d", "leaf")
	done := w.Evaluate()
	assert.Equal(t, 4, done.Evaluated)
	assert.Nil(t, w.Hold(key("a/top")), "the cycle is broken")
}

func TestSelfReferenceIsACycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loose())
	w.loose("b", "b")
	w.Evaluate()
	hold := w.Hold(key("a/b"))
	require.NotNil(t, hold)
	assert.Equal(t, "a.example.io/b → a.example.io/b", hold.Detail)
}

func TestCycleByAReferrer(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		referent.Definition{
			ID: "a", GVR: gvr("a"), Refs: []referent.EdgeDefinition{{Resource: "b", Name: "spec.b"}},
			Referrers: []referent.EdgeDefinition{{Resource: "b", Name: "spec.a"}},
		},
		referent.Definition{ID: "b", GVR: gvr("b"), Referrers: []referent.EdgeDefinition{{Resource: "a", Name: "spec.owner"}}},
	)
	w.set("a/o", map[string]any{"owner": "o"})
	w.set("b/o", map[string]any{"a": "o"})
	w.Evaluate()
	require.NotNil(t, w.Hold(key("a/o")))
	assert.Equal(t, "a.example.io/o → b.example.io/o → a.example.io/o", w.Hold(key("b/o")).Detail)
}

func TestLongChainNeedsNoRecursion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loose())
	const length = 4_000
	for i := range length {
		w.loose(fmt.Sprintf("o%d", i), fmt.Sprintf("o%d", i+1))
	}
	w.loose(fmt.Sprintf("o%d", length), "o0")
	w.Evaluate()
	require.Equal(t, referent.Cycle, w.Hold(key("a/o2000")).Reason)
	assert.Less(t, len(w.Hold(key("a/o2000")).Detail), 1000)
	w.loose(fmt.Sprintf("o%d", length))
	w.Evaluate()
	assert.Equal(t, referent.TooDeep, w.Hold(key("a/o0")).Reason)
	assert.Nil(t, w.Hold(key(fmt.Sprintf("a/o%d", length-referent.MaxDepth))))
	assert.Equal(t, key(fmt.Sprintf("a/o%d", length-referent.MaxDepth-1)), w.Hold(key("a/o0")).Node)
	assert.Len(t, w.PathToCause(key("a/o0")), referent.MaxDepth+2)
	assert.NotEmpty(t, w.Picture().Text())
}

// TestOrderOfEventsDoesNotMatter: whatever the order in which objects are set, changed and deleted, and however often the
// graph is evaluated between, the end is as if only the last state had been set.
func TestOrderOfEventsDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 0))
		final := map[string][]string{}
		w := newWorld(t, loose())
		for range 60 {
			name := fmt.Sprint(random.IntN(8))
			if random.IntN(4) == 0 {
				delete(final, name)
				w.Delete(key("a/" + name))
			} else {
				var to []string
				for range random.IntN(3) {
					to = append(to, fmt.Sprint(random.IntN(8)))
				}
				final[name] = to
				w.loose(name, to...)
			}
			if random.IntN(3) == 0 {
				w.Evaluate()
			}
		}
		w.Evaluate()
		fresh := newWorld(t, loose())
		for name, to := range final {
			random.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
			fresh.loose(name, to...)
		}
		fresh.Evaluate()
		for i := range 8 {
			k := key(fmt.Sprintf("a/%d", i))
			want, wantHold := fresh.State(k)
			got, gotHold := w.State(k)
			require.Equal(t, fmt.Sprint(wantHold), fmt.Sprint(gotHold), "seed %d, %s", seed, k)
			require.Equal(t, want, got, "seed %d, %s", seed, k)
		}
		require.Equal(t, fresh.Len(), w.Len(), "seed %d", seed)
		require.Equal(t, fresh.Held(), w.Held(), "seed %d", seed)
		require.Equal(t, fresh.Sizes(), w.Sizes(), "seed %d", seed)
	}
}
