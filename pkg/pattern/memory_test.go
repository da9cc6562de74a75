package pattern

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

// limited returns an index that keeps so many patterns of one workload that have no regular expression.
func limited(names func(string, reference.Kind) []string, patterns int) *Index[string] {
	x := NewIndex[string](names)
	x.memory = patterns * (globMemory + pairMemory)
	return x
}

func TestChangesReachWorkloadsWhosePatternsAreNotKept(t *testing.T) {
	t.Parallel()
	x := limited(existing{}.names, 2)
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "a.*", "b.*"))
	x.Set("pay", "shop", uses(t, reference.ConfigMap, "c.*", "d.*"))
	x.Set("pay", "blog", uses(t, reference.ConfigMap, "e.*"))
	require.True(t, x.Full("shop", reference.ConfigMap), "there is memory for two patterns")
	require.False(t, x.Full("shop", reference.Secret), "only workloads with patterns for a kind wait for its objects")
	require.False(t, x.Full("blog", reference.ConfigMap), "each namespace has memory of its own")

	assert.Equal(t, []string{"pay"}, x.Put("shop", configMap("c1"), nil))
	assert.Equal(t, []string{"pay"}, x.Put("shop", configMap("other"), nil), "it may match")
	assert.Equal(t, []string{"cart", "pay"}, x.Put("shop", configMap("a1"), nil))
	assert.Equal(t, []string{"cart", "pay"}, x.Remove("shop", configMap("a1"), nil))
	assert.Empty(t, x.Put("shop", reference.Ref{Kind: reference.Secret, Name: "c1"}, nil))
	_, known := x.Matching("shop", reference.ConfigMap, compiled(t, "c.*"))
	assert.False(t, known, "the pattern is not kept")
	_, known = x.Matching("shop", reference.ConfigMap, compiled(t, "a.*"))
	assert.True(t, known, "what was there first is kept")
}

func TestPatternsAreKeptAgainOnceThereIsMemory(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]func(x *Index[string]){
		"after the end of another workload":       func(x *Index[string]) { x.Delete("cart", "shop") },
		"after another workload has fewer":        func(x *Index[string]) { x.Set("cart", "shop", nil) },
		"after another workload shares a pattern": func(x *Index[string]) { x.Set("cart", "shop", uses(t, reference.ConfigMap, "c.*")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := limited(existing{}.names, 2)
			x.Set("cart", "shop", uses(t, reference.ConfigMap, "a.*", "b.*"))
			x.Set("pay", "shop", uses(t, reference.ConfigMap, "c.*"))
			require.True(t, x.Full("shop", reference.ConfigMap), "there is memory for two patterns")
			free(x)
			x.Set("pay", "shop", uses(t, reference.ConfigMap, "c.*"))
			assert.False(t, x.Full("shop", reference.ConfigMap), "there is memory for the third pattern")
			assert.Contains(t, x.Put("shop", configMap("c1"), nil), "pay")
			assert.Empty(t, x.Put("shop", configMap("other"), nil))
		})
	}
}

// An edit that replaces all patterns of a workload needs no memory for both.
func TestEditOfPatternsKeepsThem(t *testing.T) {
	t.Parallel()
	x := limited(existing{}.names, 2)
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "a.*", "b.*"))
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "c.*", "d.*"))
	assert.False(t, x.Full("shop", reference.ConfigMap), "the former patterns are gone")
	assert.Empty(t, x.Put("shop", configMap("a1"), nil))
	assert.Equal(t, []string{"cart"}, x.Put("shop", configMap("d1"), nil))
}

func TestPatternThatManyWorkloadsShareIsKeptOnce(t *testing.T) {
	t.Parallel()
	x := limited(existing{}.names, 10)
	shared := 1 + (x.memory-globMemory-pairMemory)/pairMemory
	for i := range shared {
		x.Set(strconv.Itoa(i), "shop", uses(t, reference.ConfigMap, "a.*"))
	}
	assert.False(t, x.Full("shop", reference.ConfigMap), "the memory is for as many pairs")
	x.Set("one more", "shop", uses(t, reference.ConfigMap, "a.*"))
	assert.True(t, x.Full("shop", reference.ConfigMap), "a pair of a workload and a pattern takes memory, too")
}

// busy returns the namespace shop, as it is while a goroutine works off its backlog.
func busy(x *Index[string]) *namespaceIndex[string] {
	n := x.enter("shop", false)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy = true
	return n
}

// What waits for the goroutine of a namespace takes memory as well: workloads come while it matches.
func TestPatternsThatWaitAreLimited(t *testing.T) {
	t.Parallel()
	x := limited(existing{}.names, 2)
	x.Set("first", "shop", uses(t, reference.ConfigMap, "first.*"))
	n := busy(x)
	for i := range 100 {
		x.Set("cart", "shop", uses(t, reference.ConfigMap, "a.*", fmt.Sprintf("b%d.*", i)))
	}
	assert.Zero(t, n.backlog.next.memory, "the last patterns of a workload count")
	x.Set("pay", "shop", uses(t, reference.ConfigMap, "c.*", "d.*"))
	assert.Equal(t, []Use{{reference.ConfigMap, everything}}, n.backlog.next.uses["pay"])
	n.process(x.turn)
	x.leave("shop", n)
	assert.Equal(t, []string{"cart", "pay"}, x.Put("shop", configMap("a1"), nil))
	assert.ElementsMatch(t, []string{"cart", "pay"}, x.Put("shop", configMap("d1"), nil), "of two patterns of cart one has no memory besides that of first")
	assert.Equal(t, x.memory, n.backlog.next.memory)
}

// What many workloads share while a namespace is busy is counted once, as it is in the index.
func TestPatternThatManyWorkloadsShareWaitsOnce(t *testing.T) {
	t.Parallel()
	x := limited(existing{}.names, 4)
	x.Set("first", "shop", uses(t, reference.ConfigMap, "first.*"))
	n := busy(x)
	for i := range 8 {
		for range 2 {
			x.Set(strconv.Itoa(i), "shop", uses(t, reference.ConfigMap, "a.*"))
		}
	}
	assert.Equal(t, x.memory-globMemory-8*pairMemory, n.backlog.next.memory)
	n.process(x.turn)
	x.leave("shop", n)
	assert.False(t, x.Full("shop", reference.ConfigMap), "the last pattern waits no more")
}

// With little memory the index finds all workloads that it would find with more, and counts each byte that it gives once.
func TestFullIndexMissesNoWorkload(t *testing.T) {
	t.Parallel()
	texts := []string{"a.*", ".*b", "[ab]+", "a|b|c", "c.", "(?i)A+", "x*", "a.c", "b-.*"}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		x := limited(existing{}.names, random.IntN(8))
		patterns := map[string][]Use{}
		for range 300 {
			key := strconv.Itoa(random.IntN(8))
			name := fmt.Sprintf("%c%c%c", "abc"[random.IntN(3)], "abc-"[random.IntN(4)], "abc"[random.IntN(3)])
			switch random.IntN(4) {
			case 0:
				patterns[key] = uses(t, reference.ConfigMap, texts[random.IntN(len(texts))], texts[random.IntN(len(texts))])
				x.Set(key, "shop", patterns[key])
			case 1:
				delete(patterns, key)
				x.Delete(key, "shop")
			default:
				found := x.Put("shop", configMap(name), nil)
				for key, all := range patterns {
					for _, u := range all {
						require.True(t, !u.Pattern.Match(name) || assert.Contains(t, found, key), "seed %d: %s matches %s", seed, u.Pattern, name)
					}
				}
			}
			if n := x.namespaces["shop"]; n != nil {
				require.Equal(t, x.memory, n.memory+counted(n), "seed %d", seed)
			}
		}
		for key := range patterns {
			x.Delete(key, "shop")
		}
		require.Empty(t, x.namespaces)
	}
}

// counted returns how many bytes a namespace has counted for what it keeps.
func counted(n *namespaceIndex[string]) int {
	sum := 0
	for _, t := range n.tables {
		for _, r := range t.rows {
			if r.pattern != everything {
				sum += r.memory + pairMemory*len(r.keys)
			}
		}
	}
	return sum
}

// A hundred workloads with lists that are as long as possible take no more than the memory for a namespace.
func TestMemoryOfManyPatternsIsLimited(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	x := NewIndex[string](existing{}.names)
	for i := range 100 {
		var texts []string
		for j := range 70 {
			texts = append(texts, fmt.Sprintf("a%d-%d-[a-z]{60}", i, j))
		}
		x.Set(strconv.Itoa(i), "shop", uses(t, reference.ConfigMap, texts...))
	}
	require.Eventually(t, func() bool { return x.Full("shop", reference.ConfigMap) }, time.Minute, time.Millisecond)
	n := x.enter("shop", false)
	defer x.leave("shop", n)
	assert.GreaterOrEqual(t, n.memory, 0)
	assert.Less(t, len(n.tables[reference.ConfigMap].rows), 100*70/4)
}
