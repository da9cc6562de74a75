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

// numbered returns so many names, the last one first.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("c%05d", n-1-i)
	}
	return names
}

func parseLists(t testing.TB, configMaps, secrets []string, references ...reference.Reference) (annotation.Intent, []annotation.Problem) {
	t.Helper()
	return annotation.Parse(annotation.Source{
		Workload:   map[string]string{configMapsKey: strings.Join(configMaps, ","), secretsKey: strings.Join(secrets, ",")},
		References: references,
	}, annotation.SAP{Keys: annotation.DefaultKeys()})
}

func tooMany(n int) []annotation.Problem {
	return []annotation.Problem{{Message: fmt.Sprintf("%s not tracked: a workload can track 1000; list fewer", reference.CountAre(n, "config object"))}}
}

func TestLongListTracksItsFirstNames(t *testing.T) {
	t.Parallel()
	names := numbered(30_000)
	sorted := slices.Sorted(slices.Values(names))
	first := sorted[:1000]
	needed := reference.Reference{Ref: configMap("c20000")}
	tests := map[string]struct {
		reason              string
		configMaps, secrets []string
		references          []reference.Reference
		want                []string
		dropped             int
	}{
		"as many as can be": {reason: "Nothing is too much.", configMaps: names[29_000:], want: first},
		"one more":          {reason: "The last one is dropped.", configMaps: names[28_999:], want: first, dropped: 1},
		"30,000":            {reason: "The first in their order count, not the first in the list.", configMaps: names, want: first, dropped: 29_000},
		"30,000 in order":   {reason: "Those behind the first are counted one by one.", configMaps: sorted, want: first, dropped: 29_000},
		"30,000 each":       {reason: "ConfigMaps come before Secrets.", configMaps: names, secrets: names, want: first, dropped: 59_000},
		"repeated": {
			reason: "Names that are tracked are not too much.", configMaps: slices.Concat(names[29_000:], names[29_000:], names[29_000:]), want: first,
		},
		"the last one is repeated": {
			reason: "It is tracked.", configMaps: append(slices.Clone(sorted[:2000]), first[999]), want: first, dropped: 1000,
		},
		"a needed one": {
			reason: "What the pods need comes first, wherever it is in the list.", configMaps: names,
			references: []reference.Reference{needed, {Ref: configMap("c25000"), Optional: true}, {Ref: secret("c26000")}},
			want:       append(slices.Clone(first[:999]), "c20000"), dropped: 29_000,
		},
		"a needed one among the first": {
			reason: "It takes no other's place.", configMaps: names,
			references: []reference.Reference{{Ref: configMap("c00007")}}, want: first, dropped: 29_000,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent, problems := parseLists(t, tc.configMaps, tc.secrets, tc.references...)
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

func TestLongListOfImpossibleNamesIsAProblem(t *testing.T) {
	t.Parallel()
	intent, problems := parseLists(t, slices.Repeat([]string{"A", "B", "C", "D", "E", "F"}, 20_000), nil)
	assert.True(t, intent.Asked, "the annotation asks for reloads")
	assert.Empty(t, intent.Tracked)
	require.Len(t, problems, 6)
	assert.Contains(t, problems[4].Message, `item 5 is not tracked: the name "E"`)
	assert.Contains(t, problems[5].Message, "20000 more items are wrong")
}

func TestSameLongLists(t *testing.T) {
	t.Parallel()
	names := numbered(2_000)
	other := func(name string, at int) []string {
		edited := slices.Clone(names)
		edited[at] = name
		return edited
	}
	reversed := slices.Clone(names)
	slices.Reverse(reversed)
	list, _ := parseLists(t, names, nil)
	for name, tc := range map[string]struct {
		reason string
		names  []string
		same   bool
	}{
		"order":             {reason: "The lists are sets.", names: reversed, same: true},
		"repetition":        {reason: "The lists are sets.", names: slices.Concat(names, names[1_500:]), same: true},
		"a tracked one":     {reason: "The workload asks for another object.", names: other("c00000-other", 1_999)},
		"one not tracked":   {reason: "Nothing that is tracked has changed.", names: other("z", 0), same: true},
		"a new one, before": {reason: "It takes the place of another.", names: append(slices.Clone(names), "a")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited, _ := parseLists(t, tc.names, nil)
			assert.Equal(t, tc.same, list.SameLists(edited), tc.reason)
		})
	}
}

// Names live on in caches: none may keep the 256 KiB alive that it was found in.
func TestNamesDoNotKeepTheirAnnotation(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"app" + strings.Repeat(" ", 1000), strings.Join(numbered(2_000), ",")} {
		intent, _ := annotation.Parse(annotation.Source{Workload: map[string]string{configMapsKey: value}},
			annotation.SAP{Keys: annotation.DefaultKeys()})
		from := uintptr(unsafe.Pointer(unsafe.StringData(value)))
		require.NotEmpty(t, intent.Tracked)
		for _, ref := range intent.Refs() {
			at := uintptr(unsafe.Pointer(unsafe.StringData(ref.Name)))
			assert.False(t, from <= at && at < from+uintptr(len(value)), "%s is a part of the annotation", ref)
		}
	}
}

// hugeLists are the largest that the API server accepts: 256 KiB is what all annotations of an object can have together.
func hugeLists() map[string]string {
	const size = 256 << 10
	return map[string]string{
		"one name":                strings.Repeat("a", size),
		"commas":                  strings.Repeat(",", size),
		"spaces":                  strings.Repeat(" ", size),
		"short names":             strings.Repeat("a,", size/2),
		"valid names":             strings.Join(numbered(size/7), ","),
		"invalid names":           strings.Repeat("A,", size/2),
		"different invalid names": many(size),
		"control":                 strings.Repeat("\x00\x1b,", size/3),
		"unicode":                 strings.Repeat("ö,", size/3),
	}
}

// A list costs no more memory than a few times its own length, and what is tracked of it.
func TestHugeListsAreReadInLittleMemory(t *testing.T) { //nolint:paralleltest // it measures what it allocates
	dialect := annotation.SAP{Keys: annotation.DefaultKeys()}
	for name, list := range hugeLists() {
		source := annotation.Source{Workload: map[string]string{configMapsKey: list, secretsKey: list}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		annotation.Parse(source, dialect)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20), "%s: bytes for two lists of 256 KiB", name)
	}
}

func BenchmarkParse(b *testing.B) {
	lists := hugeLists()
	lists["two names"] = "app,db"
	lists["1000 names"] = strings.Join(numbered(1_000), ",")
	dialect := annotation.SAP{Keys: annotation.DefaultKeys()}
	for name, list := range lists {
		source := annotation.Source{Workload: map[string]string{configMapsKey: list}}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				annotation.Parse(source, dialect)
			}
		})
	}
}
