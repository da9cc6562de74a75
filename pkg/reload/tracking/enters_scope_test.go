package tracking

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// webAt is a Deployment as it was at a resourceVersion, which tracks what an expression matches, with a Record or without one.
func webAt(at, record string, labels map[string]any) workload.Summary {
	return summaryOf(workload.Deployment(), map[string]any{"metadata": map[string]any{
		"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": at, "labels": labels,
		"annotations": map[string]any{"configmap.reloader.stakater.com/reload": "app-.*", annotation.DefaultPrefix + "config-record": record},
	}})
}

// scoped tracks the workloads of a scope.
func scoped(t *testing.T, of scope.Scope) *fixture {
	t.Helper()
	dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: true}
	l := standby(Options{Scope: of, Reader: stamp.Reader{Keys: annotation.DefaultKeys(), Dialects: []annotation.Dialect{dialect}}})
	reloadtest.Open(t, l.queue)
	return l
}

// A workload that was created out of scope, or while it was out of scope, starts with what is found when its namespace enters the scope.
// The watches of namespaces and of workloads do not wait for each other: the versions show what was first.
func TestWorkloadWithoutARecordStartsWhenItsNamespaceEntersTheScope(t *testing.T) {
	t.Parallel()
	none, team := map[string]string{}, map[string]string{"team": "a"}
	for name, tc := range map[string]struct {
		before, after  map[string]string
		at, record     string
		readLive       bool
		created, since string
	}{
		"created before":                  {before: none, after: team, at: "9", created: "", since: "9"},
		"created later, seen earlier":     {before: none, after: team, at: "5", created: "7", since: "7"},
		"it was in scope already":         {before: team, after: map[string]string{"team": "a", "x": "y"}, at: "9", created: "7", since: "7"},
		"it leaves the scope":             {before: team, after: none, at: "9", created: "7", since: "7"},
		"it stays out of scope":           {before: none, after: map[string]string{"x": "y"}, at: "9", created: "7", since: "7"},
		"with a Record":                   {before: none, after: team, at: "9", record: "v1", created: "", since: "7"},
		"versions that cannot be ordered": {before: none, after: team, at: "x", created: "7", since: "7"},
		"its watch has failed":            {before: none, after: team, at: "9", readLive: true, created: "7", since: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := scoped(t, scope.Scope{NamespaceSelector: labels.SelectorFromSet(labels.Set{"team": "a"})})
			web := webAt("7", tc.record, nil)
			w := &watched{kind: web.Kind, workloads: workloadsOf{web}}
			l.tracking.watches.add(w)
			l.tracking.changes.changed(w, workload.Summary{}, web, "")
			shop := shopAs(tc.before, "3", tc.after, tc.at)
			if tc.readLive {
				l.tracking.namespaces.readLive.Store("shop", nil)
			}
			l.tracking.namespaces.OnUpdate(shop[0], shop[1])
			assert.Equal(t, tc.created, l.state.Creations.Version(web.Key()))
			assert.Equal(t, tc.since, l.state.Versions.Since(web.Key()))
		})
	}
}

// The watch of the workloads may be behind that of the namespaces.
func TestWorkloadSeenAfterItsNamespaceEnteredTheScopeStartsThen(t *testing.T) {
	t.Parallel()
	none, team := map[string]string{}, map[string]string{"team": "a"}
	for name, tc := range map[string]struct {
		namespace      []*metav1.PartialObjectMetadata // the versions that its watch delivers
		readLive       bool
		deleted        bool
		at, listed     string
		record         string
		created, since string
	}{
		"created before":          {namespace: shopAs(none, "3", team, "9"), at: "7", created: "", since: "9"},
		"created later":           {namespace: shopAs(none, "3", team, "9"), at: "12", created: "12", since: "12"},
		"with a Record":           {namespace: shopAs(none, "3", team, "9"), at: "7", record: "v1", created: "", since: "7"},
		"listed as of before":     {namespace: shopAs(none, "3", team, "9"), at: "7", listed: "8", created: "", since: "9"},
		"written once more":       {namespace: shopAs(none, "3", team, "9", team, "15"), at: "12", created: "12", since: "12"},
		"it has left the scope":   {namespace: shopAs(none, "3", team, "9", none, "10"), at: "7", created: "7", since: "7"},
		"it has returned":         {namespace: shopAs(none, "3", team, "9", none, "10", team, "11"), at: "10", created: "", since: "11"},
		"deleted":                 {namespace: shopAs(none, "3", team, "9"), deleted: true, at: "7", created: "7", since: "7"},
		"its watch has failed":    {namespace: shopAs(none, "3", team, "9"), readLive: true, at: "7", created: "7", since: "7"},
		"it was in scope already": {namespace: shopAs(team, "3", team, "9"), at: "7", created: "7", since: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := scoped(t, scope.Scope{NamespaceSelector: labels.SelectorFromSet(labels.Set{"team": "a"})})
			if tc.readLive {
				l.tracking.namespaces.readLive.Store("shop", nil)
			}
			for i, after := range tc.namespace[1:] {
				l.tracking.namespaces.OnUpdate(tc.namespace[i], after)
			}
			if tc.deleted {
				l.tracking.namespaces.OnDelete(tc.namespace[0])
			}
			web := webAt(tc.at, tc.record, nil)
			l.tracking.changes.changed(&watched{kind: web.Kind}, workload.Summary{}, web, tc.listed)
			assert.Equal(t, tc.created, l.state.Creations.Version(web.Key()))
			assert.Equal(t, tc.since, l.state.Versions.Since(web.Key()))
		})
	}
}

// shopAs returns versions of namespace shop: the labels and the resourceVersion of each.
func shopAs(of ...any) []*metav1.PartialObjectMetadata {
	var all []*metav1.PartialObjectMetadata
	for i := 0; i < len(of); i += 2 {
		all = append(all, &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: of[i].(map[string]string), ResourceVersion: of[i+1].(string)},
		})
	}
	return all
}

// The same holds for the labels of the workload.
func TestWorkloadWithoutARecordStartsWhenItsLabelsEnterTheScope(t *testing.T) {
	t.Parallel()
	none, team := map[string]any{}, map[string]any{"team": "a"}
	for name, tc := range map[string]struct {
		seen           []workload.Summary
		created, since string
	}{
		"created in scope":     {[]workload.Summary{webAt("7", "", team)}, "7", "7"},
		"created out of scope": {[]workload.Summary{webAt("7", "", none), webAt("9", "", team)}, "", "9"},
		"leaves and returns":   {[]workload.Summary{webAt("7", "", team), webAt("8", "", none), webAt("9", "", team)}, "", "9"},
		"labelled in scope":    {[]workload.Summary{webAt("7", "", team), webAt("9", "", map[string]any{"team": "a", "x": "y"})}, "7", "9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := scoped(t, scope.Scope{ObjectSelector: labels.SelectorFromSet(labels.Set{"team": "a"})})
			report, before := changesOf(l, workload.Deployment()), workload.Summary{}
			for _, after := range tc.seen {
				report(before, after)
				before = after
			}
			assert.Equal(t, tc.created, l.state.Creations.Version(before.Key()))
			assert.Equal(t, tc.since, l.state.Versions.Since(before.Key()))
		})
	}
}
