package pattern

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// A namespace can have hundreds of thousands of patterns. What looks at all of them is done by its goroutine, however little there is to
// match: the events of all namespaces wait for Set, Put and Remove.
func TestManyPatternsMakeNamespaceBusy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func(x *Index[string])
		busy bool
	}{
		"an event of a known object":     {func(x *Index[string]) { x.Put("shop", configMap("app"), nil) }, true},
		"an event of a new object":       {func(x *Index[string]) { x.Put("shop", configMap("new"), nil) }, true},
		"the deletion of a known object": {func(x *Index[string]) { x.Remove("shop", configMap("app"), nil) }, true},
		"the deletion of an unknown one": {func(x *Index[string]) { x.Remove("shop", configMap("unknown"), nil) }, false},
		"an event of another kind":       {func(x *Index[string]) { x.Put("shop", reference.Ref{Kind: reference.Secret, Name: "app"}, nil) }, false},
		"the deletion of a workload":     {func(x *Index[string]) { x.Delete("cart", "shop") }, true},
		"the deletion of one of two workloads": {func(x *Index[string]) {
			x.Set("pay", "shop", uses(t, reference.ConfigMap, "a.*"))
			x.Delete("pay", "shop")
		}, false},
		"an edit that takes one pattern":  {func(x *Index[string]) { x.Set("cart", "shop", uses(t, reference.ConfigMap, "a.*")) }, true},
		"an edit that changes none":       {func(x *Index[string]) { x.Set("cart", "shop", uses(t, reference.ConfigMap, "b.*", "a.*")) }, false},
		"a new workload with its pattern": {func(x *Index[string]) { x.Set("pay", "shop", uses(t, reference.ConfigMap, "a.*")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := NewIndex[string](existing{{"shop", reference.ConfigMap}: {"app"}}.names)
			x.Set("cart", "shop", uses(t, reference.ConfigMap, "a.*", "b.*"))
			n := x.enter("shop", false)
			others := &row[string]{pattern: compiled(t, "other.*"), keys: []string{"others"}}
			table := n.tables[reference.ConfigMap]
			table.rows = append(table.rows, slices.Repeat([]*row[string]{others}, quick/bit)...)
			x.turn <- struct{}{}
			tc.do(x)
			n.mu.RLock()
			busy := n.busy
			n.mu.RUnlock()
			assert.Equal(t, tc.busy, busy)
			<-x.turn
			x.leave("shop", n)
			require.Eventually(t, func() bool { n.mu.RLock(); defer n.mu.RUnlock(); return !n.busy }, time.Minute, time.Millisecond)
		})
	}
}

// Thousands of workloads may share patterns, and go with their namespace.
func TestWorkloadsThatSharePatternsGoInSteps(t *testing.T) {
	t.Parallel()
	x := NewIndex[string](existing{}.names)
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "a.*", "b.*"))
	n := x.enter("shop", false)
	defer x.leave("shop", n)
	for _, r := range n.tables[reference.ConfigMap].rows {
		r.keys = append(r.keys, slices.Repeat([]string{"other"}, quick/2)...)
	}
	assert.Equal(t, 2, n.effort("cart", nil))
	assert.Equal(t, 1, n.effort("cart", uses(t, reference.ConfigMap, "a.*")), "one of the two")
	assert.Zero(t, n.effort("cart", uses(t, reference.ConfigMap, "b.*", "a.*")))
}

// A workload that goes leaves its place to another one, whatever its other patterns are.
func TestWorkloadsThatSharePatternsGoInAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random, x, want := rand.New(rand.NewPCG(seed, seed)), NewIndex[string](existing{}.names), map[string][]string{}
		for range 300 {
			key := strconv.Itoa(random.IntN(12))
			want[key] = nil
			for _, text := range []string{"a.*", ".*a", "aa.*", "b.*"} {
				if random.IntN(2) == 0 {
					want[key] = append(want[key], text)
				}
			}
			x.Set(key, "shop", uses(t, reference.ConfigMap, want[key]...))
			var users []string
			for key, texts := range want {
				if slices.ContainsFunc(texts, func(text string) bool { return text != "b.*" }) {
					users = append(users, key)
				}
			}
			require.ElementsMatch(t, users, x.Put("shop", configMap("aaa"), nil), "seed %d", seed)
		}
	}
}
