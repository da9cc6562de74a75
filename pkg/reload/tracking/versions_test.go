package tracking

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Where creations of objects that nothing names can trigger, it is known since when a workload is as it is.
func TestVersionOfAWorkloadThatSelectsObjects(t *testing.T) {
	t.Parallel()
	const list, search = "configmap.reloader.stakater.com/reload", "reloader.stakater.com/search"
	selecting := func(at, key, value string) workload.Summary {
		return summaryOf(workload.Deployment(), map[string]any{
			"metadata": map[string]any{
				"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": at, "annotations": map[string]any{key: value},
			},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
				"name": "c", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "app"}}},
			}}}}},
		})
	}
	labelled := func(at, pattern, label, record string) workload.Summary {
		return summaryOf(workload.Deployment(), map[string]any{
			"metadata": map[string]any{
				"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": at, "labels": map[string]any{label: "true"},
				"annotations": map[string]any{list: pattern, annotation.DefaultPrefix + "config-record": record},
			},
			"spec": map[string]any{"template": map[string]any{}},
		})
	}
	const ignored = annotation.DefaultPrefix + "ignored"
	for name, tc := range map[string]struct {
		onCreate bool
		// listed is the version of the listing that brings the first one; empty if that comes later.
		listed string
		seen   []workload.Summary
		want   string
	}{
		"an expression":              {true, "", []workload.Summary{selecting("7", list, "app-.*")}, "7"},
		"search":                     {true, "", []workload.Summary{selecting("7", search, "true")}, "7"},
		"written for another reason": {true, "", []workload.Summary{selecting("7", list, "app-.*"), selecting("8", list, "app-.*")}, "7"},
		"another list":               {true, "", []workload.Summary{selecting("7", list, "app-.*"), selecting("8", list, "x-.*")}, "8"},
		"labelled":                   {true, "", []workload.Summary{labelled("7", "app-.*", "a", "v1"), labelled("8", "app-.*", "b", "v1")}, "7"},
		"excluded for some time": {
			true, "", []workload.Summary{labelled("7", "app-.*", "a", "v1"), labelled("8", "app-.*", ignored, "v1"), labelled("9", "app-.*", "a", "v1")}, "7",
		},
		"first selected by a label":                {true, "", []workload.Summary{labelled("7", "app-.*", ignored, ""), labelled("8", "app-.*", "a", "")}, "8"},
		"another list and a label":                 {true, "", []workload.Summary{labelled("7", "app-.*", "a", "v1"), labelled("8", "x-.*", "b", "v1")}, "8"},
		"there before the watch, without a Record": {true, "9", []workload.Summary{labelled("7", "app-.*", "a", "")}, "9"},
		"there before the watch, with a Record":    {true, "9", []workload.Summary{labelled("7", "app-.*", "a", "v1")}, "7"},
		"there before the watch, recorded": {
			true, "9", []workload.Summary{labelled("7", "app-.*", "a", ""), labelled("10", "app-.*", "a", "v1")}, "10",
		},
		"there before the watch, only names": {true, "9", []workload.Summary{selecting("7", list, "app")}, ""},
		"only names":                         {true, "", []workload.Summary{selecting("7", list, "app")}, ""},
		"creations trigger nothing":          {false, "", []workload.Summary{selecting("7", list, "app-.*")}, ""},
		"deleted":                            {true, "", []workload.Summary{selecting("7", list, "app-.*"), {}}, ""},
		"etcd restored":                      {true, "", []workload.Summary{labelled("980", "app-.*", "a", "v1"), labelled("850", "app-.*", "a", "v1")}, "850"},
		"etcd restored, with another label":  {true, "", []workload.Summary{labelled("980", "app-.*", "a", "v1"), labelled("850", "app-.*", "b", "v1")}, "850"},
		"etcd restored, but not to before": {
			true, "", []workload.Summary{labelled("7", "app-.*", "a", "v1"), labelled("980", "app-.*", "a", "v1"), labelled("850", "app-.*", "a", "v1")}, "7",
		},
		"another workload of the name, of a restored etcd": {
			true, "", []workload.Summary{selecting("980", list, "app-.*"), {}, selecting("850", list, "app-.*")}, "850",
		},
		"deleted while it was listed": {true, "", []workload.Summary{selecting("7", list, "app-.*"), {}, selecting("9", list, "app-.*")}, "9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := annotation.DefaultKeys()
			dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: tc.onCreate}
			l := standby(Options{Reader: stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{dialect}}})
			reloadtest.Open(t, l.queue)
			w, before := &watched{kind: workload.Deployment()}, workload.Summary{}
			for _, after := range tc.seen {
				l.tracking.changes.changed(w, before, after, tc.listed)
				before, tc.listed = after, ""
			}
			key := workload.Key{Kind: workload.Deployment().ID(), Namespace: "shop", Name: "web"}
			assert.Equal(t, tc.want, l.state.Versions.Since(key))
		})
	}
}

// versions is an API server with one version of a workload.
type versions struct {
	client.Reader
	raw map[string]any
}

func (v *versions) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*unstructured.Unstructured).Object = v.raw
	return nil
}

// While the watch fails, a live read shows since when a workload is as it is. Each re-check is one.
func TestVersionOfAWorkloadThatIsReadLive(t *testing.T) {
	t.Parallel()
	const list = "configmap.reloader.stakater.com/reload"
	kind := workload.Deployment()
	raw := func(at, pattern, record, other string) map[string]any {
		return map[string]any{"metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": at, "generation": int64(1),
			"annotations": map[string]any{list: pattern, annotation.DefaultPrefix + "config-record": record, "example.com/other": other},
		}}
	}
	kept := func(o workload.Object) workload.Summary {
		all := func(string) bool { return true }
		return workload.Summary{Kind: o.Kind, Kept: o.Keep(workload.Keep{
			Label: all, Annotation: func(key string) bool { return !strings.HasPrefix(key, "example.com/") },
		})}
	}
	seen := func(at, pattern, record string) workload.Summary {
		return kept(workload.Object{Kind: kind, Raw: raw(at, pattern, record, "")})
	}
	for name, record := range map[string]string{"with a Record": "v1", "without a Record": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: true}
			reader, live := reloadtest.Reader(), &versions{}
			reader.Dialects = []annotation.Dialect{dialect}
			l := standby(Options{
				Reader: reader, Watches: failing{"deployments.apps": true}, Mapper: mapperOf(kind), APIReader: live, Summary: kept,
			})
			reloadtest.Open(t, l.queue)
			first := seen("50", "team-a-.*", record)
			w := &watched{kind: kind, workloads: single{first}}
			l.tracking.watches.add(w)
			l.tracking.changes.changed(w, workload.Summary{}, first, "")
			key := first.Key()
			require.Equal(t, "50", l.state.Versions.Since(key))
			for _, step := range []struct {
				raw  map[string]any
				want string
				why  string
			}{
				{raw("70", "team-a-.*", record, "x"), "50", "no annotation that is kept has changed"},
				{raw("120", "team-b-.*", record, "x"), "120", "another expression"},
				{raw("121", "team-b-.*", record, "y"), "120", "the same expression, at the next re-check"},
				{raw("110", "team-b-.*", record, "y"), "110", "the same expression, after a restore of etcd"},
			} {
				live.raw = step.raw
				_, found := l.tracking.Get(t.Context(), key)
				require.True(t, found, "the workload is read live")
				assert.Equal(t, step.want, l.state.Versions.Since(key), step.why)
				if step.want == "50" {
					assert.Same(t, first.Kept, w.readLive[key].Kept, "it is not kept twice")
				}
			}
			l.tracking.changes.changed(w, first, seen("122", "team-b-.*", record), "")
			assert.Equal(t, "110", l.state.Versions.Since(key), "the watch works again, and brings what was read live")
			l.tracking.changes.changed(w, seen("122", "team-b-.*", record), seen("123", "team-c-.*", record), "")
			assert.Equal(t, "123", l.state.Versions.Since(key))
		})
	}
}

// Without a webhook, a Record of any workload may be older than its pods.
func TestVersionOfEachWorkloadWithoutAWebhook(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		direct bool
		names  string
		want   string
	}{
		"without a webhook":            {direct: true, names: "app", want: "7"},
		"with a webhook":               {names: "app"},
		"a workload that asks nothing": {direct: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := annotation.DefaultKeys()
			l := standby(Options{Direct: tc.direct, Reader: stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}}}})
			reloadtest.Open(t, l.queue)
			annotations := map[string]any{}
			if tc.names != "" {
				annotations[annotation.DefaultPrefix+"configmaps"] = tc.names
			}
			web := summaryOf(workload.Deployment(), map[string]any{
				"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "7", "annotations": annotations},
				"spec":     map[string]any{"template": map[string]any{}},
			})
			l.tracking.changes.changed(&watched{kind: workload.Deployment()}, workload.Summary{}, web, "")
			assert.Equal(t, tc.want, l.state.Versions.Since(web.Key()))
		})
	}
}
