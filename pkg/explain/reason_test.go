package explain_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
			want: "the annotations select no object: no configmap that is not ignored or excluded has a name that an expression matches; " +
				"no secret that is not ignored or excluded has a name that an expression matches",
		},
		"search": {
			annotations: map[string]any{domain + "search": "true"},
			want:        `the annotations select no object: not marked by the annotation ` + domain + `match: "true", ignored, or not there: configmap/app`,
		},
		"ignored": {
			annotations: map[string]any{list: "quiet"},
			want:        "the annotations select no object: ignored by the annotation " + domain + "ignore or by --resource-label-selector: configmap/quiet",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := selecting{annotations: tc.annotations, onPods: tc.onPods, unread: tc.unread}.explain()
			assert.Equal(t, "nothing", report.Verdict)
			assert.Contains(t, report.Reason, tc.want)
			assert.Empty(t, report.NotTracked, "the reason says it")
		})
	}
}

// What the annotations ask for and leave out is beside what is tracked.
func TestObjectsThatAreLeftOutAreSaid(t *testing.T) {
	t.Parallel()
	const domain = "reloader.stakater.com/"
	const ignored = "ignored by the annotation " + domain + "ignore or by --resource-label-selector: "
	tests := map[string]struct {
		annotations map[string]any
		labelled    []reference.Ref
		unlisted    error
		want        []string
	}{
		"all are tracked": {annotations: map[string]any{domain + "auto": "true"}},
		"one is ignored": {
			annotations: map[string]any{"configmap." + domain + "reload": "app,quiet"}, want: []string{ignored + "configmap/quiet"},
		},
		"many are ignored": {
			annotations: map[string]any{"configmap." + domain + "reload": "app," + manyQuiet},
			want: []string{ignored + "configmap/quiet0, configmap/quiet1, configmap/quiet2, configmap/quiet3, configmap/quiet4, configmap/quiet5, " +
				"configmap/quiet6, configmap/quiet7 and 2 more"},
		},
		"the other dialect names": {
			annotations: map[string]any{"configmap." + domain + "reload": "app,quiet", "pod-reloader.cs.sap.com/configmaps": "quiet"},
		},
		"one is not marked": {
			annotations: map[string]any{domain + "search": "true", "secret." + domain + "reload": "db"},
			want:        []string{"not marked by the annotation " + domain + `match: "true", ignored, or not there: configmap/app`},
		},
		"an expression matches": {annotations: map[string]any{"configmap." + domain + "reload": "a.p"}},
		"an expression matches none": {
			annotations: map[string]any{"configmap." + domain + "reload": "app,x-.*"},
			want:        []string{"no configmap that is not ignored or excluded has a name that an expression matches"},
		},
		"what an expression matches is ignored": {
			annotations: map[string]any{"configmap." + domain + "reload": "app,quiet[0-9]"},
			want:        []string{"no configmap that is not ignored or excluded has a name that an expression matches"},
		},
		"a label names no custom resource": {
			annotations: map[string]any{"configmap." + domain + "reload": "app"},
			labelled:    []reference.Ref{{Kind: "kafkas.kafka.strimzi.io", Name: "gone"}},
		},
		"nothing is known": {
			annotations: map[string]any{domain + "search": "true", "pod-reloader.cs.sap.com/configmaps": "app"}, unlisted: errors.New("forbidden"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := selecting{annotations: tc.annotations, labelled: tc.labelled, unlisted: tc.unlisted}.explain()
			assert.NotEmpty(t, report.Configuration)
			assert.Equal(t, tc.want, report.NotTracked)
			var out bytes.Buffer
			require.NoError(t, report.Write(&out))
			assert.Equal(t, len(tc.want), strings.Count(out.String(), "\nNot tracked: "))
		})
	}
}

const manyQuiet = "quiet0,quiet1,quiet2,quiet3,quiet4,quiet5,quiet6,quiet7,quiet8,quiet9"

// selecting is a Deployment that uses configmap/app, in a namespace with ConfigMaps that are ignored.
type selecting struct {
	annotations, onPods map[string]any
	// unread says that the annotations of Reloader are not read.
	unread bool
	// labelled are the custom resources that the labels name.
	labelled []reference.Ref
	// unlisted is why the config objects could not be listed.
	unlisted error
}

func (s selecting) explain() explain.Report {
	raw := map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": "cart", "annotations": s.annotations},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": s.onPods},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": "cart", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "app"}}},
			}}},
		}},
	}
	keys := annotation.DefaultKeys()
	stakater := annotation.Stakater{Keys: annotation.NewStakaterKeys()}
	in := explain.Input{Object: workload.Object{Kind: workload.Deployment(), Raw: raw}, Keys: keys, Stakater: &stakater.Keys}
	finder := func(map[string]string, []reference.Owner) (owned, labelled []reference.Ref, known bool) {
		return nil, s.labelled, true
	}
	dialects := []annotation.Dialect{annotation.SAP{Keys: keys, Workloads: finder}, stakater}
	if s.unread {
		in.Stakater, dialects = nil, dialects[:1]
	}
	listed := annotation.Listed{app: {}, db: {}}
	for _, name := range append(strings.Split(manyQuiet, ","), "quiet") {
		listed[reference.Ref{Kind: reference.ConfigMap, Name: name}] = annotation.Traits{Ignored: true}
	}
	reader := stamp.Reader{Keys: keys, Dialects: dialects, Objects: func(string) (annotation.Objects, error) { return listed, s.unlisted }}
	in.View, in.Problems = reader.Read(in.Object)
	return explain.Explain(in)
}
