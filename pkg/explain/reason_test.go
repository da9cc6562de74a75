package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A workload that no object can restart names the annotations of its dialect, and why they select nothing.
func TestReasonWhyNothingIsSelected(t *testing.T) {
	t.Parallel()
	const (
		domain = "reloader.stakater.com/"
		list   = "configmap." + domain + "reload"
		none   = "no annotation asks for reloads; set pod-reloader.cs.sap.com/configmaps or pod-reloader.cs.sap.com/secrets " +
			"on the workload itself, not on its pod template"
		invalid = "the annotations select no object: what they name is invalid or excluded, or the pods reference none"
	)
	tests := map[string]struct {
		annotations, onPods map[string]any
		// unread says that the annotations of Reloader are not read.
		unread bool
		want   string
	}{
		"no annotation":         {want: none + ", or an annotation of Reloader such as " + domain + "auto"},
		"one dialect":           {unread: true, want: none},
		"auto is false":         {annotations: map[string]any{domain + "auto": "false", list: "app"}, want: "annotation " + domain + `auto is "false", which switches off all annotations of Reloader`},
		"auto is false on pods": {onPods: map[string]any{domain + "auto": "0"}, want: `auto is "0", which switches off`},
		"auto is no boolean":    {annotations: map[string]any{domain + "auto": "yes"}, want: invalid},
		"invalid name":          {annotations: map[string]any{"pod-reloader.cs.sap.com/configmaps": "A"}, want: invalid},
		"excluded":              {annotations: map[string]any{list: "app", "configmaps.exclude." + domain + "reload": "app"}, want: invalid},
		"expression": {
			annotations: map[string]any{list: "x-.*", "secret." + domain + "reload": "y-.*"},
			want: "the annotations select no object: no configmap has a name that an expression matches; " +
				"no secret has a name that an expression matches",
		},
		"search": {
			annotations: map[string]any{domain + "search": "true"},
			want:        `the annotations select no object: no configmap that the pods reference has the annotation ` + domain + `match: "true"`,
		},
		"ignored": {
			annotations: map[string]any{list: "quiet"},
			want:        "the annotations select no object: ignored by the annotation " + domain + "ignore or by --resource-label-selector: configmap/quiet",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := map[string]any{
				"metadata": map[string]any{"namespace": "shop", "name": "cart", "annotations": tc.annotations},
				"spec": map[string]any{"template": map[string]any{
					"metadata": map[string]any{"annotations": tc.onPods},
					"spec": map[string]any{"containers": []any{map[string]any{
						"name": "cart", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "app"}}},
					}}},
				}},
			}
			keys := annotation.DefaultKeys()
			stakater := annotation.Stakater{Keys: annotation.NewStakaterKeys()}
			kind := workload.Deployment()
			in := explain.Input{Object: workload.Object{Kind: kind, Raw: raw}, Keys: keys, Stakater: &stakater.Keys}
			dialects := []annotation.Dialect{annotation.SAP{Keys: keys}, stakater}
			if tc.unread {
				in.Stakater, dialects = nil, dialects[:1]
			}
			reader := stamp.Reader{Keys: keys, Dialects: dialects, Objects: func(string) (annotation.Objects, error) {
				return annotation.Listed{app: {}, {Kind: reference.ConfigMap, Name: "quiet"}: {Ignored: true}}, nil
			}}
			in.View, in.Problems = reader.Read(in.Object)
			report := explain.Explain(in)
			assert.Equal(t, "nothing", report.Verdict)
			assert.Contains(t, report.Reason, tc.want)
		})
	}
}
