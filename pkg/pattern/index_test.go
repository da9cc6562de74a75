package pattern

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func compiled(t testing.TB, text string) *Pattern {
	t.Helper()
	p, err := Compile(text)
	require.NoError(t, err)
	return p
}

func uses(t testing.TB, kind reference.Kind, texts ...string) []Use {
	t.Helper()
	var all []Use
	for _, text := range texts {
		all = append(all, Use{kind, compiled(t, text)})
	}
	return all
}

// scope is one kind of config objects in one namespace.
type scope struct {
	namespace string
	kind      reference.Kind
}

// existing answers with the names that there are for each kind in each namespace.
type existing map[scope][]string

func (e existing) names(namespace string, kind reference.Kind) []string {
	return e[scope{namespace, kind}]
}

func configMap(name string) reference.Ref {
	return reference.Ref{Kind: reference.ConfigMap, Name: name}
}

// Matching asks about one pattern: false where nothing is known of it.
func (x *Index[K]) Matching(namespace string, kind reference.Kind, p *Pattern) ([]string, bool) {
	names, unknown := x.Names(namespace, kind, []*Pattern{p})
	return names, len(unknown) == 0
}

func TestIndexFindsWorkloadsByPattern(t *testing.T) {
	t.Parallel()
	x := NewIndex[string](existing{{"shop", reference.ConfigMap}: {"app-2", "app-1", "db"}}.names)
	assert.Empty(t, x.Put("shop", configMap("app-0"), nil), "no workload has a pattern yet")
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "app-.*", ".*-1"))
	x.Set("pay", "shop", uses(t, reference.ConfigMap, "app-.*", "app-.*"))
	x.Set("other", "blog", uses(t, reference.ConfigMap, "app-.*"))
	x.Set("secrets", "shop", uses(t, reference.Secret, "app-.*"))

	assert.Equal(t, []string{"cart", "pay"}, x.Put("shop", configMap("app-1"), nil), "each once, in the same namespace, for the same kind")
	assert.Empty(t, x.Put("shop", configMap("db"), nil))
	assert.Equal(t, []string{"cart", "pay"}, x.Put("shop", configMap("app-3"), nil), "an object that came later")
	missing := compiled(t, "unknown.*")
	all, unknown := x.Names("shop", reference.ConfigMap, []*Pattern{compiled(t, ".*-1"), missing, compiled(t, "app-.*")})
	assert.Equal(t, []string{"app-1", "app-2", "app-3"}, all, "each once, however many patterns match it")
	assert.Equal(t, []*Pattern{missing}, unknown)
	names, known := x.Matching("shop", reference.ConfigMap, compiled(t, "app-.*"))
	assert.True(t, known, "a workload has this pattern")
	assert.Equal(t, []string{"app-1", "app-2", "app-3"}, names, "what is sorted does not depend on the order of arrival")

	assert.Equal(t, []string{"cart", "pay"}, x.Remove("shop", configMap("app-1"), nil))
	assert.Empty(t, x.Remove("shop", configMap("app-1"), nil), "it is gone already")
	names, _ = x.Matching("shop", reference.ConfigMap, compiled(t, ".*-1"))
	assert.Empty(t, names)

	_, known = x.Matching("shop", reference.ConfigMap, compiled(t, "unknown.*"))
	assert.False(t, known, "no workload has it")
	_, known = x.Matching("else", reference.ConfigMap, compiled(t, "app-.*"))
	assert.False(t, known, "no workload of that namespace has it")

	x.Set("cart", "shop", uses(t, reference.ConfigMap, ".*-1"))
	assert.Equal(t, []string{"pay"}, x.Put("shop", configMap("app-2"), nil), "a pattern that was dropped finds nothing")
	x.Delete("other", "blog")
	x.Delete("other", "blog")
	for _, key := range []string{"cart", "pay", "secrets"} {
		x.Delete(key, "shop")
	}
	assert.Empty(t, x.namespaces, "nothing is kept")
}

func TestIndexOfManyNamesAndRepeatedPatterns(t *testing.T) {
	t.Parallel()
	at := scope{"shop", reference.ConfigMap}
	names := existing{at: nil}
	for i := range 200 {
		names[at] = append(names[at], fmt.Sprintf("app-%03d", i))
	}
	x := NewIndex[string](names.names)
	x.Set("cart", "shop", uses(t, reference.ConfigMap, "app-.*", "app-.*", "web-.*"))
	assert.Equal(t, []string{"cart"}, x.Put("shop", configMap("web-1"), nil), "what comes after a repeated one counts")
	for _, text := range []string{"app-.*", "web-.*"} {
		matching, _ := x.Matching("shop", reference.ConfigMap, compiled(t, text))
		assert.Equal(t, bruteForce(compiled(t, text), append(names[at], "web-1")), matching)
	}
	x.Remove("shop", configMap("web-1"), nil)
	x.Put("shop", configMap("web-2"), nil)
	assert.Len(t, x.namespaces["shop"].tables[reference.ConfigMap].names, 201, "the number of a name that is gone is used again")
}

// The names of a namespace may be many, and its expressions slow.
func TestNamespaceHoldsUpItselfOnly(t *testing.T) {
	t.Parallel()
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	x := NewIndex[string](func(namespace string, _ reference.Kind) []string {
		if namespace == "slow" {
			close(begun)
			<-end
		}
		return []string{"app-1"}
	})
	patterns := uses(t, reference.ConfigMap, "app-.*")
	go func() {
		defer close(ended)
		x.Set("busy", "slow", patterns)
	}()
	<-begun
	x.Set("cart", "shop", patterns)
	assert.Equal(t, []string{"cart"}, x.Put("shop", configMap("app-2"), nil))
	_, known := x.Matching("shop", reference.ConfigMap, patterns[0].Pattern)
	assert.True(t, known, "the namespace shop does not wait for the busy one")
	x.Delete("cart", "shop")
	close(end)
	<-ended
	assert.Equal(t, []string{"busy"}, x.Put("slow", configMap("app-1"), nil))
}

// withoutMatches makes each match of an expression that is in use panic.
func withoutMatches[K comparable](t *testing.T, x *Index[K]) {
	t.Helper()
	for _, r := range x.namespaces["shop"].tables[reference.ConfigMap].rows {
		r.pattern.whole = nil
		require.Panics(t, func() { r.pattern.Match("app-1") }, "the expression is not one that a prefix decides")
	}
}

// A change of a known object must not cost a match for each pattern.
func TestIndexMatchesEachNameOnce(t *testing.T) {
	t.Parallel()
	const text = "(app|web)-.*"
	x := NewIndex[string](existing{{"shop", reference.ConfigMap}: {"app-1", "app-2"}}.names)
	x.Set("cart", "shop", uses(t, reference.ConfigMap, text))
	withoutMatches(t, x)
	assert.Equal(t, []string{"cart"}, x.Put("shop", configMap("app-1"), nil))
	x.Set("pay", "shop", uses(t, reference.ConfigMap, text))
	assert.Equal(t, []string{"cart", "pay"}, x.Put("shop", configMap("app-1"), nil), "workloads share the matches of a pattern")
}

// Of 500 patterns and 5,000 objects, an event of a known object costs no match, nor does its deletion.
func TestEventsOfManyKnownObjectsCostNoMatch(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	x := large(t)
	withoutMatches(t, x)
	for i, name := range largeNames("shop", reference.ConfigMap) {
		require.Equal(t, []int{i % 500}, x.Put("shop", configMap(name), nil), name)
	}
	assert.Equal(t, []int{7}, x.Remove("shop", configMap("app-7-config-7"), nil))
	assert.Panics(t, func() { x.Put("shop", configMap("app-7-config-new"), nil) }, "a new name is matched")
}

// The index agrees with matching all patterns against all names, whatever happens in whichever order.
func TestIndexAgreesWithBruteForce(t *testing.T) {
	t.Parallel()
	texts := []string{"a.*", ".*b", "[ab]+", "a|b|c", "c.", "(?i)A+", "x*", "a.c", "b-.*"}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		names := existing{}
		at := scope{"shop", reference.Secret}
		x := NewIndex[int](names.names)
		patterns := map[int][]Use{}
		for range 300 {
			name := fmt.Sprintf("%c%c%c", "abc"[random.IntN(3)], "abc-"[random.IntN(4)], "abc"[random.IntN(3)])
			key := random.IntN(8)
			var found []int
			switch random.IntN(4) {
			case 0:
				patterns[key] = uses(t, at.kind, texts[random.IntN(len(texts))], texts[random.IntN(len(texts))])
				x.Set(key, at.namespace, patterns[key])
				continue
			case 1:
				delete(patterns, key)
				x.Delete(key, at.namespace)
				continue
			case 2:
				if !slices.Contains(names[at], name) {
					names[at] = append(names[at], name)
				}
				found = x.Put(at.namespace, reference.Ref{Kind: at.kind, Name: name}, nil)
			case 3:
				there := slices.Contains(names[at], name)
				names[at] = slices.DeleteFunc(slices.Clone(names[at]), func(n string) bool { return n == name })
				found = x.Remove(at.namespace, reference.Ref{Kind: at.kind, Name: name}, nil)
				if !there {
					require.Empty(t, found)
					continue
				}
			}
			want := map[int]bool{}
			for key, all := range patterns {
				for _, u := range all {
					want[key] = want[key] || u.Pattern.Match(name)
				}
			}
			maps.DeleteFunc(want, func(_ int, matches bool) bool { return !matches })
			require.ElementsMatch(t, slices.Collect(maps.Keys(want)), found, "seed %d, %s", seed, name)
			for _, all := range patterns {
				for _, u := range all {
					matching, known := x.Matching(at.namespace, at.kind, u.Pattern)
					require.True(t, known, "seed %d, %s: %s", seed, name, u.Pattern)
					require.Equal(t, bruteForce(u.Pattern, names[at]), matching)
				}
			}
		}
	}
}

func bruteForce(p *Pattern, names []string) []string {
	var matching []string
	for _, name := range names {
		if p.Match(name) {
			matching = append(matching, name)
		}
	}
	slices.Sort(matching)
	return matching
}

// large returns an index with 500 patterns of as many workloads, and 5,000 objects.
func large(t testing.TB) *Index[int] {
	t.Helper()
	x := NewIndex[int](largeNames)
	for i := range 500 {
		x.Set(i, "shop", uses(t, reference.ConfigMap, fmt.Sprintf("(app|team)-%d-.*", i)))
	}
	return x
}

func largeNames(string, reference.Kind) []string {
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprintf("app-%d-config-%d", i%500, i))
	}
	return names
}

func BenchmarkIndexEventOfKnownObject(b *testing.B) {
	x := large(b)
	ref := configMap("app-7-config-7")
	b.ReportAllocs()
	for b.Loop() {
		x.Put("shop", ref, nil)
	}
}

func BenchmarkIndexEventOfNewObject(b *testing.B) {
	x := large(b)
	ref := configMap("app-7-config-new")
	b.ReportAllocs()
	for b.Loop() {
		x.Put("shop", ref, nil)
		x.Remove("shop", ref, nil)
	}
}

func BenchmarkIndexMatching(b *testing.B) {
	x := large(b)
	p := compiled(b, "(app|team)-7-.*")
	b.ReportAllocs()
	for b.Loop() {
		x.Matching("shop", reference.ConfigMap, p)
	}
}

func BenchmarkIndexFill(b *testing.B) {
	for b.Loop() {
		large(b)
	}
}
