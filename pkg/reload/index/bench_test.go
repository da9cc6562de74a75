package index

import (
	"fmt"
	"testing"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// crowd is the number of workloads of a start; each reads three ConfigMaps of its own.
const crowd = 1000

// known answers what the second dialect asks about the objects of a namespace, as the metadata cache does: each is marked.
type known struct {
	exists   map[reference.Ref]bool
	patterns *pattern.Index[workload.Key]
}

var _ annotation.Objects = known{}

func (k known) Traits(ref reference.Ref) (annotation.Traits, bool) {
	return annotation.Traits{Marked: k.exists[ref]}, k.exists[ref]
}

func (k known) Matching(kind reference.Kind, patterns []*pattern.Pattern) []string {
	names, _ := k.patterns.Names("shop", kind, patterns)
	return names
}

// Err is nil: all are looked at.
func (known) Err() error { return nil }

// BenchmarkStart is what a start does with 1,000 workloads before any comparison: each is read and entered, and then resolved to
// what it tracks. Lists of names, patterns and marks select the same three objects.
func BenchmarkStart(b *testing.B) {
	var names []string
	exists := map[reference.Ref]bool{}
	for i := range crowd {
		for _, name := range objectsOf(i) {
			names = append(names, name)
			exists[reference.Ref{Kind: reference.ConfigMap, Name: name}] = true
		}
	}
	for what, annotations := range map[string]func(i int) map[string]any{
		"lists": func(i int) map[string]any {
			three := objectsOf(i)
			return map[string]any{annotation.DefaultPrefix + "configmaps": three[0] + "," + three[1] + "," + three[2]}
		},
		"patterns": func(i int) map[string]any {
			return map[string]any{"configmap.reloader.stakater.com/reload": fmt.Sprintf("app-%d-.*", i)}
		},
		"matches": func(int) map[string]any { return map[string]any{"reloader.stakater.com/search": "true"} },
	} {
		b.Run(what, func(b *testing.B) {
			workloads := make([]workload.Summary, crowd)
			for i := range workloads {
				workloads[i] = summary(b, i, annotations(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				start(b, workloads, names, exists)
			}
		})
	}
}

func objectsOf(i int) [3]string {
	return [3]string{fmt.Sprintf("app-%d-env", i), fmt.Sprintf("app-%d-files", i), fmt.Sprintf("app-%d-flags", i)}
}

func summary(b *testing.B, i int, annotations map[string]any) workload.Summary {
	b.Helper()
	var from []any
	for _, name := range objectsOf(i) {
		from = append(from, map[string]any{"configMapRef": map[string]any{"name": name}})
	}
	o := workload.Object{Kind: workload.Deployment(), Raw: map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": fmt.Sprintf("web-%d", i), "uid": fmt.Sprint(i), "annotations": annotations},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "image": "example.com/app:1", "envFrom": from}},
		}}},
	}}
	all := func(string) bool { return true }
	return workload.Summary{Kind: o.Kind, Kept: o.Keep(workload.Keep{Label: all, Annotation: all})}
}

func start(b *testing.B, workloads []workload.Summary, names []string, exists map[reference.Ref]bool) {
	b.Helper()
	patterns := patternsOf(names...)
	keys := annotation.DefaultKeys()
	reader := stamp.Reader{
		Keys:     keys,
		Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}, annotation.Stakater{Keys: annotation.NewStakaterKeys(), Patterns: &pattern.Cache{}}},
		Objects:  func(string) (annotation.Objects, error) { return known{exists, patterns}, nil },
	}
	x := New(patterns)
	for _, s := range workloads {
		x.Set(workload.Key{Kind: s.Kind.ID(), Namespace: s.Namespace(), Name: s.Name()}, reader.Intent(s))
	}
	for _, s := range workloads {
		view, problems := reader.ReadSummary(s)
		if len(view.Intent.Tracked) != 3 || len(problems) > 0 {
			b.Fatalf("%s tracks %v: %v", s.Name(), view.Intent.Tracked, problems)
		}
	}
}
