package annotation_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestLongListOfReloaderTracksItsFirstNames(t *testing.T) {
	t.Parallel()
	names := numbered(30_000)
	sorted := slices.Sorted(slices.Values(names))
	tests := map[string]struct {
		reason     string
		list       []string
		excluded   []string
		references []reference.Reference
		want       []string
		dropped    int
	}{
		"as many as can be": {reason: "Nothing is too much.", list: names[29_000:], want: sorted[:1000]},
		"30,000":            {reason: "The first in their order count, not the first in the list.", list: names, want: sorted[:1000], dropped: 29_000},
		"excluded": {
			reason: "What is excluded takes no other's place.", list: names[15_000:], excluded: sorted[:14_500], want: sorted[14_500:15_000],
		},
		"a needed one": {
			reason: "What the pods need comes first.", list: names, references: []reference.Reference{{Ref: configMap("c20000")}},
			want: append(slices.Clone(sorted[:999]), "c20000"), dropped: 29_000,
		},
		"an expression at the end": {
			reason: "It is read, too, and its matches come after the names.", list: append(slices.Clone(names[29_100:]), "z.*"),
			want: append(slices.Clone(sorted[:900]), "z-1"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := annotation.Source{Workload: map[string]string{
				cmReloadKey: strings.Join(tc.list, ","), cmExcludeKey: strings.Join(tc.excluded, ","),
			}, References: tc.references}
			intent, problems := annotation.Parse(src, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
			require.Empty(t, problems, "Resolve reports what is too much")
			intent, problems = annotation.Resolve(intent, cluster{configMap("z-1"): {}}, recorded{}, src.References)
			want := make([]reference.Ref, len(tc.want))
			for i, name := range tc.want {
				want[i] = configMap(name)
			}
			assert.Equal(t, want, intent.Refs(), tc.reason)
			if tc.dropped == 0 {
				assert.Empty(t, problems, tc.reason)
				return
			}
			assert.Equal(t, tooMany(tc.dropped), problems, tc.reason)
		})
	}
}

// Each annotation is as large as the API server accepts all of them to be together.
func TestHugeListsOfReloaderAreReadInLittleMemory(t *testing.T) { //nolint:paralleltest // it measures what it allocates
	dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys()}
	lists := hugeLists()
	lists["expressions that are compiled to be refused"] = series(256<<10, "(.?){480}x%d,")
	lists["expressions that are refused by their text"] = series(256<<10, "(abcdefghijklmnopqrstuvwxyz){80}x%d,")
	for name, list := range lists {
		for _, key := range []string{cmReloadKey, cmExcludeKey} {
			source := annotation.Source{Workload: map[string]string{key: list, autoKey: "true"}, References: used()}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			annotation.Parse(source, dialect)
			runtime.ReadMemStats(&after)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "%s in %s: bytes for a list of 256 KiB", name, key)
		}
	}
}

// All who may write a workload choose expressions, and each name of the namespace is matched with all of them.
func TestSlowExpressionsOfAListAreBoundedTogether(t *testing.T) {
	t.Parallel()
	slow := strings.Repeat("a*", 16)
	tests := map[string]struct {
		reason string
		list   []string
		want   int
	}{
		"slow": {reason: "Three take 34 steps for each character.", list: []string{slow + "b", slow + "c", slow + "d", slow + "e"}, want: 3},
		"literals": {
			reason: "They take next to no time.", list: strings.Split(strings.TrimSuffix(series(4<<10, ".*-config-%03d,"), ","), ","), want: 293,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent, problems := annotation.Parse(annotation.Source{Workload: map[string]string{cmReloadKey: strings.Join(tc.list, ",")}},
				annotation.Stakater{Keys: annotation.NewStakaterKeys()})
			assert.Equal(t, tc.want, len(intent.Patterns()), tc.reason) //nolint:testifylint // the patterns themselves say nothing
			if tc.want == len(tc.list) {
				assert.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0].Message, "item 4 is not tracked")
			assert.Contains(t, problems[0].Message, "the list has reached its limit of expressions before")
		})
	}
}

// Each invalid expression is charged for: 500 of them are the budget of a list.
func TestExpressionThatTakesTheLastOfTheBudgetIsTracked(t *testing.T) {
	t.Parallel()
	for invalid, want := range map[int]int{499: 1, 500: 0} {
		list := make([]string, 0, invalid+1)
		for i := range invalid {
			list = append(list, fmt.Sprintf("x%d(", i))
		}
		intent, _ := annotation.Parse(annotation.Source{Workload: map[string]string{cmReloadKey: strings.Join(append(list, "app-.*"), ",")}},
			annotation.Stakater{Keys: annotation.NewStakaterKeys()})
		assert.Equal(t, want, len(intent.Patterns()), "behind %d invalid ones", invalid) //nolint:testifylint // the patterns themselves say nothing
	}
}

// A name with a dot is an expression as well. It must not take the budget of an expression that is no name, wherever it is in the list.
func TestNamesWithDotsLeaveTheBudgetToExpressions(t *testing.T) {
	t.Parallel()
	names := strings.TrimSuffix(series(200*len("tls-000.example.com,"), "tls-%03d.example.com,"), ",")
	for _, list := range []string{names + ",app-.*", "app-.*," + names} {
		intent, problems := annotation.Parse(annotation.Source{Workload: map[string]string{cmReloadKey: list}},
			annotation.Stakater{Keys: annotation.NewStakaterKeys()})
		assert.Empty(t, problems)
		assert.LessOrEqual(t, len(intent.Patterns()), 101, "the others are tracked as names only")
		texts := map[string]bool{}
		for _, use := range intent.Patterns() {
			texts[use.Pattern.String()] = true
		}
		assert.Contains(t, texts, "app-.*")
		assert.Len(t, intent.Selections[0].Listed, 200)
	}
}

// Names and expressions live on in caches and indexes: none may keep the annotation that it was found in.
func TestItemsOfReloaderDoNotKeepTheirAnnotation(t *testing.T) {
	t.Parallel()
	value := strings.Join(append(numbered(2_000), "app-.*", "db-[0-9]+"), ",")
	from := uintptr(unsafe.Pointer(unsafe.StringData(value)))
	apart := func(text string) {
		at := uintptr(unsafe.Pointer(unsafe.StringData(text)))
		assert.False(t, from <= at && at < from+uintptr(len(value)), "%s is a part of the annotation", text)
	}
	intent, _ := annotation.Parse(annotation.Source{Workload: map[string]string{cmReloadKey: value}},
		annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	require.NotEmpty(t, intent.Candidates())
	for _, ref := range intent.Candidates() {
		apart(ref.Name)
	}
	require.Len(t, intent.Patterns(), 2)
	for _, use := range intent.Patterns() {
		apart(use.Pattern.String())
	}
}

func BenchmarkStakaterHugeLists(b *testing.B) {
	dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys()}
	lists := hugeLists()
	lists["expressions"] = series(256<<10, "x%d.*,")
	for name, list := range lists {
		for what, source := range map[string]map[string]string{
			"listed":   {cmReloadKey: list},
			"excluded": {cmExcludeKey: list, autoKey: "true"},
		} {
			b.Run(what+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					annotation.Parse(annotation.Source{Workload: source, References: used()}, dialect)
				}
			})
		}
	}
}
