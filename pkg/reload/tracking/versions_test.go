package tracking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		return summaryOf(workload.Builtin()[1], map[string]any{
			"metadata": map[string]any{
				"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": at, "annotations": map[string]any{key: value},
				"creationTimestamp": time.Now().UTC().Format(time.RFC3339),
			},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
				"name": "c", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "app"}}},
			}}}}},
		})
	}
	labelled := func(at, pattern, label, record string) workload.Summary {
		return summaryOf(workload.Builtin()[1], map[string]any{
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
		seen     []workload.Summary
		want     string
	}{
		"an expression":              {true, []workload.Summary{selecting("7", list, "app-.*")}, "7"},
		"search":                     {true, []workload.Summary{selecting("7", search, "true")}, "7"},
		"written for another reason": {true, []workload.Summary{selecting("7", list, "app-.*"), selecting("8", list, "app-.*")}, "7"},
		"another list":               {true, []workload.Summary{selecting("7", list, "app-.*"), selecting("8", list, "x-.*")}, "8"},
		"labelled":                   {true, []workload.Summary{labelled("7", "app-.*", "a", "v1"), labelled("8", "app-.*", "b", "v1")}, "7"},
		"excluded for some time": {
			true, []workload.Summary{labelled("7", "app-.*", "a", "v1"), labelled("8", "app-.*", ignored, "v1"), labelled("9", "app-.*", "a", "v1")}, "7",
		},
		"first selected by a label":   {true, []workload.Summary{labelled("7", "app-.*", ignored, ""), labelled("8", "app-.*", "a", "")}, "8"},
		"another list and a label":    {true, []workload.Summary{labelled("7", "app-.*", "a", "v1"), labelled("8", "x-.*", "b", "v1")}, "8"},
		"only names":                  {true, []workload.Summary{selecting("7", list, "app")}, ""},
		"creations trigger nothing":   {false, []workload.Summary{selecting("7", list, "app-.*")}, ""},
		"deleted":                     {true, []workload.Summary{selecting("7", list, "app-.*"), {}}, ""},
		"deleted while it was listed": {true, []workload.Summary{selecting("7", list, "app-.*"), {}, selecting("9", list, "app-.*")}, "9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, err := annotation.NewKeys(annotation.DefaultPrefix)
			require.NoError(t, err)
			dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys(), ReloadOnCreate: tc.onCreate}
			l := standby(Options{Reader: stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{dialect}}})
			reloadtest.Open(t, l.queue)
			report, before := changesOf(l, workload.Builtin()[1]), workload.Summary{}
			for _, after := range tc.seen {
				report(before, after)
				before = after
			}
			key := workload.Key{Kind: workload.Builtin()[1].ID(), Namespace: "shop", Name: "web"}
			assert.Equal(t, tc.want, l.state.Versions.Since(key))
		})
	}
}
