package pattern

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// slow takes as many steps as an expression may: each "a" of a name can belong to any of its parts.
const slow = "a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*[bc]"

// longNames returns names that take long to match with slow.
func longNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%03d", strings.Repeat("a", 240), i)
	}
	return names
}

// stall makes a namespace as busy as if it matched; the returned function works off what has come since.
func stall[K comparable](x *Index[K], namespace string) (process func()) {
	n := x.enter(namespace, true)
	n.mu.Lock()
	n.busy = true
	n.mu.Unlock()
	return func() {
		n.process(x.turn)
		x.leave(namespace, n)
	}
}

func TestEventsOfBusyNamespaceAreHandledLater(t *testing.T) {
	t.Parallel()
	x := NewIndex[string](existing{{"shop", reference.ConfigMap}: {"app-1"}}.names)
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "app-.*"))
	x.Set("goes", "shop", uses(t, reference.ConfigMap, "app-.*"))
	process := stall(x, "shop")
	var found []string
	later := func(keys []string) {
		require.NotEmpty(t, keys, "there is nothing to do for none")
		found = append(found, keys...)
	}

	assert.Empty(t, x.Put("shop", configMap("app-2"), later))
	assert.Empty(t, x.Put("shop", configMap("app-2"), later), "of several events the last counts")
	assert.Empty(t, x.Put("shop", configMap("db"), later))
	x.Set("pay", "shop", uses(t, reference.ConfigMap, "db.*"))
	x.Set("pay", "shop", uses(t, reference.ConfigMap, ".*2"))
	x.Delete("goes", "shop")
	assert.NotContains(t, x.namespaces["shop"].byKey, "pay", "the tables are another goroutine's")
	assert.Contains(t, x.namespaces["shop"].byKey, "goes")
	_, known := x.Matching("shop", reference.ConfigMap, compiled(t, "app-.*"))
	assert.False(t, known, "it is not known whether a name is missing")
	assert.Empty(t, found)

	process()
	assert.Equal(t, []string{"cart", "pay"}, found, "a workload that came after the object is found, too, and no pattern is left that matches db")
	names, known := x.Matching("shop", reference.ConfigMap, compiled(t, ".*2"))
	assert.True(t, known, "all names were compared")
	assert.Equal(t, []string{"app-2"}, names)
	assert.Equal(t, []string{"cart"}, x.Put("shop", configMap("app-3"), later), "it is busy no more")
}

// Updates of the status of workloads, one after the other, hold up no config object of a busy namespace.
func TestConfigObjectWaitsForNoWorkloadThatComesLater(t *testing.T) {
	t.Parallel()
	x := NewIndex[string](existing{}.names)
	patterns := uses(t, reference.ConfigMap, "app-.*")
	x.Set("cart", "shop", patterns)
	process := stall(x, "shop")
	var found []string
	x.Set("cart", "shop", patterns)
	x.Put("shop", configMap("app-1"), func(keys []string) { found = keys })
	n := x.namespaces["shop"]
	for range 2 {
		n.mu.Lock()
		do, slow := n.backlog.take(n)
		n.mu.Unlock()
		assert.False(t, slow, "the patterns of the workload are quick")
		do()
		x.Set("cart", "shop", patterns)
	}
	assert.Equal(t, []string{"cart"}, found)
	process()
}

// Only what takes long waits for the turn that all namespaces share.
func TestQuickPartsOfABacklogTakeNoTurn(t *testing.T) {
	t.Parallel()
	x := NewIndex[string](existing{{"shop", reference.ConfigMap}: longNames(400)}.names)
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "app-.*"))
	process := stall(x, "shop")
	var found []string
	x.Put("shop", configMap("app-1"), func(keys []string) { found = keys })
	x.turn <- struct{}{} // another namespace has it
	process()
	assert.Equal(t, []string{"cart"}, found)

	process = stall(x, "shop")
	x.Set("pay", "shop", uses(t, reference.ConfigMap, slow))
	n := x.namespaces["shop"]
	n.mu.Lock()
	do, slow := n.backlog.take(n)
	n.mu.Unlock()
	assert.NotNil(t, do)
	assert.True(t, slow, "the workload has a pattern that takes long")
	process()
}

// A workload may have been resolved with a name that the index has never had.
func TestObjectThatCameAndWentWhileANamespaceWasBusyConcernsItsWorkloads(t *testing.T) {
	t.Parallel()
	x := NewIndex[string](existing{}.names)
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "app-.*"))
	process := stall(x, "shop")
	var found []string
	later := func(keys []string) { found = append(found, keys...) }
	x.Put("shop", configMap("app-1"), later)
	x.Remove("shop", configMap("app-1"), nil)
	x.Put("shop", configMap("app-2"), nil) // as at a start, when all are looked at anyway
	process()
	assert.Equal(t, []string{"cart"}, found, "an event without a caller for later hides no earlier one")
	names, known := x.Matching("shop", reference.ConfigMap, compiled(t, "app-.*"))
	assert.True(t, known, "all names were compared")
	assert.Equal(t, []string{"app-2"}, names)

	process = stall(x, "shop")
	x.Delete("cart", "shop")
	process()
	assert.Empty(t, x.namespaces, "nothing is kept")
}

func TestSlowExpressionsAreMatchedInTheEnd(t *testing.T) {
	t.Parallel()
	names := longNames(100)
	x := NewIndex[string](func(namespace string, _ reference.Kind) []string {
		if namespace == "crowd" {
			return names
		}
		return []string{"app-1"}
	})
	x.Set("hostile", "crowd", uses(t, reference.ConfigMap, slow)) // some 1,000,000 steps
	found := make(chan []string, 1)
	inside := x.Put("crowd", configMap(strings.Repeat("a", 100)+"b"), func(keys []string) { found <- keys })
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "app-.*"))
	assert.Equal(t, []string{"cart"}, x.Put("shop", configMap("app-2"), nil), "another namespace waits for nothing")
	if inside == nil { // the usual case; it may be done already
		inside = <-found
	}
	assert.Equal(t, []string{"hostile"}, inside)
	require.Eventually(t, func() bool {
		_, known := x.Matching("crowd", reference.ConfigMap, compiled(t, slow))
		return known
	}, time.Minute, time.Millisecond)
	x.Delete("hostile", "crowd")
	assert.Eventually(t, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.namespaces["crowd"] == nil
	}, time.Minute, time.Millisecond, "nothing is kept")
}

// Slow namespaces take one processor together.
func TestSlowNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	names := longNames(100)
	x := NewIndex[string](func(string, reference.Kind) []string { return names })
	p := compiled(t, slow)
	isKnown := func(namespace string) bool {
		_, known := x.Matching(namespace, reference.ConfigMap, p)
		return known
	}
	x.turn <- struct{}{} // it is another's
	for _, namespace := range []string{"a", "b"} {
		x.Set(namespace, namespace, []Use{{reference.ConfigMap, p}})
		assert.False(t, isKnown(namespace), "the namespace waits for its turn")
	}
	<-x.turn
	for _, namespace := range []string{"a", "b"} {
		require.Eventually(t, func() bool { return isKnown(namespace) }, time.Minute, time.Millisecond, namespace)
	}
}

// A caller waits for so many steps at most, whether a pattern is new or an object.
func TestLongMatchingMakesNamespaceBusy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		names    int
		patterns []string
		busy     bool
	}{
		"few names":         {names: 40, patterns: []string{slow}, busy: false},
		"many names":        {names: 80, patterns: []string{slow}, busy: true},
		"many patterns":     {names: 40, patterns: []string{slow, slow + "d"}, busy: true},
		"another beginning": {names: 80, patterns: []string{"b" + slow}, busy: false},
		"literals first":    {names: 80, patterns: []string{"a.*", slow}, busy: true},
		"literals":          {names: 10_000, patterns: []string{".*a.*b"}, busy: false},
		"many literals":     {names: 10_000, patterns: []string{".*a", ".*b", ".*c", ".*d", ".*e", ".*f", ".*g"}, busy: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := NewIndex[string](existing{{"shop", reference.ConfigMap}: longNames(tc.names)}.names)
			n := x.enter("shop", true)
			assert.Equal(t, tc.busy, n.effort("cart", uses(t, reference.ConfigMap, tc.patterns...)) > quick)
		})
	}
	x := NewIndex[string](existing{}.names)
	for i := range 80 {
		x.Set(fmt.Sprint(i), "shop", uses(t, reference.ConfigMap, fmt.Sprintf("%s%02d", slow, i)))
	}
	n := x.enter("shop", false)
	assert.Greater(t, n.effortOf(configMap(strings.Repeat("a", 240))), quick, "one name and 80 patterns")
	assert.Less(t, n.effortOf(configMap("a")), quick, "a short one")
}

// However events and stalls follow each other, the index agrees with matching everything, and no event of an object is lost.
func TestBusyIndexAgreesWithBruteForce(t *testing.T) {
	t.Parallel()
	texts := []string{"a.*", ".*b", "[ab]+", "a|b|c", "c.", "x*", "b-.*"}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		names := map[string]bool{}
		x := NewIndex[int](func(string, reference.Kind) []string { return slices.Collect(maps.Keys(names)) })
		x.Set(100, "shop", uses(t, reference.ConfigMap, "never")) // so that the names are known
		patterns := map[int][]Use{}
		for range 20 {
			process := stall(x, "shop")
			found, changed := map[string]map[int]bool{}, map[string]bool{}
			for range random.IntN(20) {
				name := fmt.Sprintf("%c%c", "abc"[random.IntN(3)], "abc-"[random.IntN(4)])
				key := random.IntN(5)
				later := func(keys []int) {
					found[name] = map[int]bool{}
					for _, key := range keys {
						found[name][key] = true
					}
				}
				switch random.IntN(4) {
				case 0:
					patterns[key] = uses(t, reference.ConfigMap, texts[random.IntN(len(texts))], texts[random.IntN(len(texts))])
					x.Set(key, "shop", patterns[key])
				case 1:
					delete(patterns, key)
					x.Delete(key, "shop")
				case 2:
					names[name], changed[name] = true, true
					require.Nil(t, x.Put("shop", configMap(name), later))
				case 3:
					delete(names, name)
					changed[name] = true
					require.Nil(t, x.Remove("shop", configMap(name), later))
				}
			}
			process()
			for name := range changed {
				want := map[int]bool{}
				for key, all := range patterns {
					if slices.ContainsFunc(all, func(u Use) bool { return u.Pattern.Match(name) }) {
						want[key] = true
					}
				}
				require.Len(t, found[name], len(want), "seed %d: %s", seed, name)
				require.Subset(t, found[name], want, "seed %d: %s", seed, name)
			}
			for _, all := range patterns {
				for _, u := range all {
					matching, known := x.Matching("shop", reference.ConfigMap, u.Pattern)
					require.True(t, known, "seed %d: %s", seed, u.Pattern)
					require.Equal(t, bruteForce(u.Pattern, slices.Collect(maps.Keys(names))), matching, "seed %d: %s", seed, u.Pattern)
				}
			}
		}
	}
}

// The bounds count as what is still quick.
func TestBoundsAreInclusive(t *testing.T) {
	t.Parallel()
	p := compiled(t, "[ab]c")
	p.steps = quick / 10
	names := strings.Split(strings.Repeat("x", 10), "")
	_, ok := (&Budget{}).Matching(p, names)
	assert.True(t, ok, "the steps are as many as are quick")
	_, ok = (&Budget{}).Matching(p, append(names, "y"))
	assert.False(t, ok, "there is one name too many")

	x := NewIndex[string](existing{{"shop", reference.ConfigMap}: {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}}.names)
	x.Set("cart", "shop", []Use{{reference.ConfigMap, p}})
	_, known := x.Matching("shop", reference.ConfigMap, p)
	assert.True(t, known, "the caller has waited")
	assert.Equal(t, []string{"cart"}, x.Put("shop", configMap("ac"), nil))
	put := func(later func([]string)) []string {
		x := NewIndex[string](existing{}.names)
		x.Set("cart", "shop", []Use{{reference.ConfigMap, p}, uses(t, reference.ConfigMap, ".*x")[0]})
		return x.Put("shop", configMap("ac"), later)
	}
	p.steps = (quick - 2*(look+bit)) / 2
	assert.Equal(t, []string{"cart"}, put(nil))
	p.steps++
	found := make(chan []string, 1)
	require.Empty(t, put(func(keys []string) { found <- keys }), "a step more for each character, and the literals of both patterns")
	assert.Equal(t, []string{"cart"}, <-found)
}

func TestEffort(t *testing.T) {
	t.Parallel()
	p := compiled(t, "app-(a|b)+")
	require.Positive(t, p.Steps())
	assert.Equal(t, 5*p.Steps(), p.effort("app-a"))
	assert.Equal(t, 1, p.effort("web-a"))
	assert.Equal(t, look, compiled(t, "app-.*").effort("app-a"))
}

func TestStepsAreThoseOfTheLongestName(t *testing.T) {
	t.Parallel()
	tree, err := syntax.Parse("a*b", syntax.Perl)
	require.NoError(t, err)
	steps, ok := stepsWithin(tree, maxSteps)
	require.True(t, ok, "the steps are within the bound")
	assert.Equal(t, 3+4*(longestName-1), steps, "an alternative, its two characters, and the end after one of them")
	_, ok = stepsWithin(tree, steps)
	assert.True(t, ok, "as many as can be")
	_, ok = stepsWithin(tree, steps-1)
	assert.False(t, ok, "the bound is one step less")
}

func TestBudgetBoundsAllMatchingTogether(t *testing.T) {
	t.Parallel()
	names := append(longNames(30), "ab")
	var b Budget
	matching, ok := b.Matching(compiled(t, slow), names)
	assert.True(t, ok, "some 260,000 steps")
	assert.Equal(t, []string{"ab"}, matching)
	matching, ok = b.Matching(compiled(t, ".*b"), names)
	assert.True(t, ok, "literals take few")
	assert.Equal(t, []string{"ab"}, matching)
	matching, ok = b.Matching(compiled(t, slow+"?"), names)
	assert.False(t, ok, "some 520,000 together")
	assert.Empty(t, matching, "not a part of them, which would look like all")
}
