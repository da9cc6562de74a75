package annotation_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// FuzzStakater: the annotations come from every user who may write a workload.
func FuzzStakater(f *testing.F) {
	f.Add("app-.*,db", "true", "false", "true", "app-1")
	f.Add("a{1,3}, (?i)APP ,,a(", "yes", "", "True", "a.*")
	f.Add(".*", "0", "1", "", "")
	var cache pattern.Cache
	dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), Patterns: &cache, ReloadOnCreate: true}
	sap := annotation.SAP{Keys: annotation.DefaultKeys()}
	f.Fuzz(func(t *testing.T, list, auto, typed, search, exclude string) {
		src := annotation.Source{Workload: map[string]string{
			cmReloadKey: list, autoKey: auto, cmAutoKey: typed, searchKey: search, cmExcludeKey: exclude, configMapsKey: "sap",
		}, References: used()}
		resolve := func(src annotation.Source, dialects ...annotation.Dialect) annotation.Intent {
			intent, problems := annotation.Parse(src, dialects...)
			require.LessOrEqual(t, len(problems), 24)
			for _, p := range problems {
				require.Less(t, len(p.Message), 1024)
			}
			intent, _ = annotation.Resolve(intent, shop(), recorded{refs: []reference.Ref{configMap("app-3")}}, src.References)
			require.Subset(t, slices.Concat(intent.Candidates(), keysOfShop(), []reference.Ref{configMap("app-3")}), intent.Refs())
			return intent
		}
		intent := resolve(src, dialect)
		for ref := range intent.Tracked {
			require.NoError(t, reference.ValidName(ref.Name), "only names that can exist are tracked")
			require.False(t, shop()[ref].Ignored, "%s is ignored, and must not be tracked", ref)
		}
		if len(list) < 1000 { // longer ones may exceed what is compiled
			items := strings.Split(list, ",")
			slices.Reverse(items)
			src.Workload[cmReloadKey] = " ," + strings.Join(items, " ,\t") + "," + list
			require.Equal(t, intent.Tracked, resolve(src, dialect).Tracked, "white space, order and repetition do not matter")
		}
		union, alone := resolve(src, dialect, sap), resolve(src, sap)
		require.Equal(t, union.Tracked, resolve(src, sap, dialect).Tracked, "the order of dialects does not matter")
		want := maps.Clone(intent.Tracked)
		for ref := range alone.Tracked {
			if want == nil {
				want = map[reference.Ref]annotation.Trigger{}
			}
			want[ref] = annotation.Trigger{OnCreate: true, OnDelete: true}
		}
		require.Equal(t, want, union.Tracked, "a union of both, and of what triggers")
	})
}

func keysOfShop() []reference.Ref {
	var refs []reference.Ref
	for ref := range shop() {
		refs = append(refs, ref)
	}
	return refs
}

func BenchmarkStakater(b *testing.B) {
	var cache pattern.Cache
	dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), Patterns: &cache}
	for name, workload := range map[string]map[string]string{
		"not asked": {"a": "b", "app.kubernetes.io/name": "x"},
		"auto":      {autoKey: "true"},
		"named":     {cmReloadKey: "app,db"},
		"patterns":  {cmReloadKey: "app-.*,db-.*", searchKey: "true"},
	} {
		b.Run(name, func(b *testing.B) {
			src := annotation.Source{Workload: workload, References: used()}
			objects := shop()
			b.ReportAllocs()
			for b.Loop() {
				intent, _ := annotation.Parse(src, dialect)
				annotation.Resolve(intent, objects, recorded{}, src.References)
			}
		})
	}
}
