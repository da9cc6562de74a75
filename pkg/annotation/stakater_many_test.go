package annotation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestCandidatesAreIndexedWhetherTrackedOrNot(t *testing.T) {
	t.Parallel()
	sap := annotation.SAP{Keys: annotation.DefaultKeys()}
	src := annotation.Source{Workload: map[string]string{searchKey: "true", cmReloadKey: "app-.*,app,named", secretsKey: "sap"}, References: used()}
	intent, _ := annotation.Parse(src, sap, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	want := []reference.Ref{
		configMap("absent"), configMap("app"), configMap("marked"), configMap("named"), secret("app"), secret("db"), secret("sap"),
	}
	assert.Equal(t, want, intent.Candidates())
	require.Len(t, intent.Patterns(), 1)
	assert.Equal(t, reference.ConfigMap, intent.Patterns()[0].Kind)
	assert.Equal(t, "app-.*", intent.Patterns()[0].Pattern.String())
	plain, _ := annotation.Parse(annotation.Source{Workload: map[string]string{secretsKey: "sap"}}, sap)
	assert.Equal(t, plain.Refs(), plain.Candidates(), "without a Selection they are what is tracked")
}

func TestResolveTracksAtMostAThousandRefs(t *testing.T) {
	t.Parallel()
	objects := cluster{}
	for i := range 3000 {
		objects[secret(fmt.Sprintf("a-%04d", i))] = annotation.Traits{}
	}
	src := annotation.Source{Workload: map[string]string{sReloadKey: "a-.*,z-listed", autoKey: "true"}, References: []reference.Reference{{Ref: secret("z-needed")}}}
	intent, _ := annotation.Parse(src, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	intent, problems := annotation.Resolve(intent, objects, recorded{}, src.References)
	assert.Len(t, intent.Tracked, reference.MaxTracked)
	assert.Equal(t, []annotation.Problem{{Message: "2002 config objects are not tracked: a workload can track 1000; list fewer"}}, problems)
	for _, ref := range []reference.Ref{secret("z-needed"), secret("z-listed"), secret("a-0997")} {
		assert.Contains(t, intent.Tracked, ref, "what is needed or listed comes before what patterns match")
	}
}

// Objects that are gone come after those that exist. That one had a content may matter, and is reported; that one was absent already
// matters only where creations trigger, and is forgotten otherwise.
func TestGoneObjectsLeaveThePlacesToThoseThatExist(t *testing.T) {
	t.Parallel()
	series := func(prefix string, n int) []reference.Ref {
		refs := make([]reference.Ref, n)
		for i := range refs {
			refs[i] = secret(fmt.Sprintf("%s-%04d", prefix, i))
		}
		return refs
	}
	for name, tc := range map[string]struct {
		exist, content, absent int
		onCreate               bool
		// tracked are how many of each.
		tracked [3]int
		problem string
	}{
		"few":                        {exist: 2, content: 3, absent: 4, tracked: [3]int{2, 3, 0}},
		"few, creations trigger":     {exist: 2, content: 3, absent: 4, onCreate: true, tracked: [3]int{2, 3, 4}},
		"absent names":               {exist: 400, absent: 900, tracked: [3]int{400, 0, 0}},
		"absent names fill the rest": {exist: 400, content: 500, absent: 900, onCreate: true, tracked: [3]int{400, 500, 100}},
		"names with a content": {
			exist: 400, content: 700, absent: 900, onCreate: true, tracked: [3]int{400, 600, 0},
			problem: "100 config objects are not tracked: a workload can track 1000; list fewer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := cluster{}
			exist, known := series("c", tc.exist), recorded{refs: series("b", tc.content), absent: series("a", tc.absent)}
			for _, ref := range exist {
				objects[ref] = annotation.Traits{}
			}
			dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: tc.onCreate}
			intent, _ := annotation.Parse(annotation.Source{Workload: map[string]string{sReloadKey: "[abc]-.*"}}, dialect)
			intent, problems := annotation.Resolve(intent, objects, known, nil)
			var tracked [3]int
			for i, refs := range [][]reference.Ref{exist, known.refs, known.absent} {
				for _, ref := range refs {
					if _, ok := intent.Tracked[ref]; ok {
						tracked[i]++
					}
				}
			}
			assert.Equal(t, tc.tracked, tracked, "that exist, that had a content, that were absent")
			if tc.problem == "" {
				assert.Empty(t, problems)
				return
			}
			assert.Equal(t, []annotation.Problem{{Message: tc.problem}}, problems)
		})
	}
}

// A Record can be written by hand, and a caller waits for the matching: where it takes too long, what is recorded is tracked.
func TestRecordedNamesAreMatchedAsLongAsThatIsQuick(t *testing.T) {
	t.Parallel()
	known := recorded{refs: make([]reference.Ref, 900)}
	for i := range known.refs {
		known.refs[i] = secret(fmt.Sprintf("%s-%04d", strings.Repeat("a", 200), i))
	}
	for name, tc := range map[string]struct {
		list        string
		least, most int
	}{
		"literals":        {"b.*", 0, 0},
		"what takes long": {"[bc].*", 1, 899},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys()}
			parsed, problems := annotation.Parse(annotation.Source{Workload: map[string]string{sReloadKey: tc.list}}, dialect)
			require.Empty(t, problems)
			intent, _ := annotation.Resolve(parsed, cluster{}, known, nil)
			assert.GreaterOrEqual(t, len(intent.Tracked), tc.least)
			assert.LessOrEqual(t, len(intent.Tracked), tc.most)
			reversed := recorded{refs: slices.Clone(known.refs)}
			slices.Reverse(reversed.refs)
			again, _ := annotation.Resolve(parsed, cluster{}, reversed, nil)
			assert.Equal(t, intent.Refs(), again.Refs(), "the same ones in each order")
		})
	}
}

func TestStakaterHugeLists(t *testing.T) {
	t.Parallel()
	const size = 256 << 10
	dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys()}
	for name, list := range map[string]string{
		"one expression":      strings.Repeat("a.", size/2),
		"expressions":         series(size, "x%d.*,"),
		"large expressions":   series(size, "x%d[a-z]{900},"),
		"invalid expressions": series(size, "x%d(,"),
		"invalid names":       series(size, "N%d,"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent, problems := dialect.Parse(annotation.Source{Workload: map[string]string{cmReloadKey: list, sReloadKey: list, cmExcludeKey: list}})
			assertBounded(t, problems[:min(len(problems), 16)])
			assert.LessOrEqual(t, len(problems), 24)
			for _, s := range intent.Selections {
				cost := 0
				for _, p := range s.Patterns {
					cost += p.Cost()
				}
				assert.LessOrEqual(t, cost, 12_000, "what is compiled is bounded")
			}
		})
	}
}

// series makes a list of different items.
func series(size int, format string) string {
	var list strings.Builder
	for i := 0; list.Len() < size; i++ {
		fmt.Fprintf(&list, format, i)
	}
	return list.String()
}
