package index

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// patternsOf returns an index of patterns in namespaces that have the given ConfigMaps.
func patternsOf(names ...string) *pattern.Index[workload.Key] {
	return pattern.NewIndex[workload.Key](func(_ string, kind reference.Kind) []string {
		if kind == reference.ConfigMap {
			return names
		}
		return nil
	})
}

// reloaderIntent reads a workload of the second dialect.
func reloaderIntent(annotations, references map[string]any) annotation.Intent {
	keys := annotation.DefaultKeys()
	reader := stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}, annotation.Stakater{Keys: annotation.NewStakaterKeys()}}}
	kind := workload.DaemonSet()
	all := func(string) bool { return true }
	o := workload.Object{Kind: kind, Raw: map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": "web", "annotations": annotations},
		"spec":     map[string]any{"template": map[string]any{"spec": references}},
	}}
	return reader.Intent(workload.Summary{Kind: kind, Kept: o.Keep(workload.Keep{Label: all, Annotation: all})})
}

func TestConfigEventReachesWorkloadsWhosePatternMatches(t *testing.T) {
	t.Parallel()
	x := New(patternsOf("app-1"))
	intent := reloaderIntent(map[string]any{
		"configmap.reloader.stakater.com/reload": "app-.*,app-1,gone", "pod-reloader.cs.sap.com/secrets": "db",
	}, nil)
	key := workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: "web"}
	app1, app2 := reference.Ref{Kind: reference.ConfigMap, Name: "app-1"}, reference.Ref{Kind: reference.ConfigMap, Name: "app-2"}
	gone, db := reference.Ref{Kind: reference.ConfigMap, Name: "gone"}, reference.Ref{Kind: reference.Secret, Name: "db"}
	assert.Equal(t, []reference.Ref{app1, gone, db}, x.Set(key, intent), "what is named is indexed by name")

	event := func(ref reference.Ref, kind configstate.EventType, initial bool) []workload.Key {
		return x.WorkloadsFor(configstate.Event{Namespace: "shop", Ref: ref, Type: kind, Initial: initial}, nil)
	}
	assert.Equal(t, []workload.Key{key}, event(app1, configstate.Modified, false), "once, though it is named and matched")
	assert.Empty(t, event(app2, configstate.Added, true), "what was there at the start is compared anyway")
	names, unknown := x.patterns.Names("shop", reference.ConfigMap, []*pattern.Pattern{intent.Patterns()[0].Pattern})
	require.Empty(t, unknown)
	assert.Equal(t, []string{"app-1", "app-2"}, names, "but its name is known")
	assert.Equal(t, []workload.Key{key}, event(reference.Ref{Kind: reference.ConfigMap, Name: "app-3"}, configstate.Added, false), "it appears later")
	assert.Equal(t, []workload.Key{key}, event(app2, configstate.Deleted, false))
	assert.Equal(t, []workload.Key{key}, event(app2, configstate.Deleted, false), "one that was only read, and that no watch has shown")
	names, unknown = x.patterns.Names("shop", reference.ConfigMap, []*pattern.Pattern{intent.Patterns()[0].Pattern})
	require.Empty(t, unknown)
	assert.Equal(t, []string{"app-1", "app-3"}, names, "it is not there")
	assert.Equal(t, []workload.Key{key}, event(db, configstate.Modified, false))
	assert.Empty(t, event(reference.Ref{Kind: reference.Secret, Name: "app-1"}, configstate.Added, false), "of another kind")

	x.Delete(key)
	assert.Empty(t, event(app2, configstate.Added, false))
	x.Set(key, intent)
	x.DeleteKind(key.Kind)
	assert.Empty(t, event(app1, configstate.Modified, false))
}

func TestConfigEventReachesWorkloadsThatNameTheObjectAndThoseThatMatchIt(t *testing.T) {
	t.Parallel()
	named, matches, both := workload.Key{Namespace: "shop", Name: "named"}, workload.Key{Namespace: "shop", Name: "matches"}, workload.Key{Namespace: "shop", Name: "both"}
	names := reloaderIntent(map[string]any{"pod-reloader.cs.sap.com/configmaps": "app-1"}, nil)
	expression := reloaderIntent(map[string]any{"configmap.reloader.stakater.com/reload": "app-.*"}, nil)
	all := reloaderIntent(map[string]any{"configmap.reloader.stakater.com/reload": "app-.*", "pod-reloader.cs.sap.com/configmaps": "app-1"}, nil)
	for name, tc := range map[string]struct{ names, matches, both bool }{
		"one names it": {names: true}, "one matches it": {matches: true}, "one does both": {both: true}, "none": {},
		"one each": {names: true, matches: true}, "one each, and one does both": {names: true, matches: true, both: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := New(patternsOf("app-1"))
			var want []workload.Key
			for _, w := range []struct {
				there  bool
				key    workload.Key
				intent annotation.Intent
			}{{tc.names, named, names}, {tc.matches, matches, expression}, {tc.both, both, all}} {
				if w.there {
					x.Set(w.key, w.intent)
					want = append(want, w.key)
				}
			}
			app := configstate.Event{Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app-1"}, Type: configstate.Modified}
			assert.ElementsMatch(t, want, x.WorkloadsFor(app, nil))
		})
	}
}

// A change of one object must not have thousands of others' workloads looked at.
func TestChangeConcernsOnlyAutomaticWorkloadsThatReferenceTheObject(t *testing.T) {
	t.Parallel()
	x := New(patternsOf())
	own := func(name string) map[string]any {
		return map[string]any{"volumes": []any{map[string]any{"name": "v", "configMap": map[string]any{"name": name}}}}
	}
	auto := map[string]any{"reloader.stakater.com/auto": "true"}
	numbered := func(i int) string { return fmt.Sprintf("n%04d", i) }
	key := func(i int) workload.Key {
		return workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: numbered(i)}
	}
	for i := range 5000 {
		x.Set(key(i), reloaderIntent(auto, own(numbered(i%1000))))
	}
	change := configstate.Event{Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: numbered(7)}, Type: configstate.Modified}
	assert.Equal(t, []workload.Key{key(7), key(1007), key(2007), key(3007), key(4007)}, x.WorkloadsFor(change, nil))
}
