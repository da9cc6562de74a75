package pattern

import (
	"slices"
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
		"an event of a known object":      {func(x *Index[string]) { x.Put("shop", configMap("app"), nil) }, true},
		"an event of a new object":        {func(x *Index[string]) { x.Put("shop", configMap("new"), nil) }, true},
		"the deletion of a known object":  {func(x *Index[string]) { x.Remove("shop", configMap("app"), nil) }, true},
		"the deletion of an unknown one":  {func(x *Index[string]) { x.Remove("shop", configMap("unknown"), nil) }, false},
		"an event of another kind":        {func(x *Index[string]) { x.Put("shop", reference.Ref{Kind: reference.Secret, Name: "app"}, nil) }, false},
		"the deletion of a workload":      {func(x *Index[string]) { x.Delete("cart", "shop") }, true},
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

// Thousands of workloads may share a pattern, and go with their namespace.
func TestSharedPatternsMakeNamespaceBusyWhereWorkloadsGo(t *testing.T) {
	t.Parallel()
	x := NewIndex[string](existing{}.names)
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "a.*", "b.*"))
	n := x.enter("shop", false)
	for _, r := range n.tables[reference.ConfigMap].rows {
		r.keys = append(r.keys, slices.Repeat([]string{"other"}, quick/2)...)
	}
	assert.Greater(t, n.effort("cart", nil), quick)
	assert.Less(t, n.effort("cart", uses(t, reference.ConfigMap, "a.*")), quick, "one of the two")
	assert.Zero(t, n.effort("cart", uses(t, reference.ConfigMap, "b.*", "a.*")))
}
