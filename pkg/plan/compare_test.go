package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/plan"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
)

func TestBothSeeEachPlaceThatReloaderKnows(t *testing.T) {
	t.Parallel()
	for name, pod := range map[string]string{
		"variable of a ConfigMap": `, env: [{name: X, valueFrom: {configMapKeyRef: {name: app, key: k}}}]}]`,
		"variable of a Secret":    `, env: [{name: X, valueFrom: {secretKeyRef: {name: pull, key: k}}}]}]`,
		"other variables":         `, env: [{name: X, value: x}, {name: Y, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]`,
		"ConfigMap of a volume":   `, volumeMounts: [{name: v}]}], volumes: [{name: v, projected: {sources: [{configMap: {name: app}}]}}]`,
		"Secret of a volume":      `, volumeMounts: [{name: v}]}], volumes: [{name: v, projected: {sources: [{secret: {name: pull}}]}}]`,
	} {
		assert.Empty(t, plan.Compare(input(t, deployment(auto, pod))).Groups, name)
	}
}

func TestWorkloadWithoutAPodTemplateIsNotRestarted(t *testing.T) {
	t.Parallel()
	in := input(t, "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: cart, namespace: shop, annotations: {configmap."+domain+
		"reload: app}}\nspec: {workloadRef: {name: cart}}\n")
	assert.Empty(t, plan.Compare(in).Groups, "by neither program")
}

// One item selects the object since Reloader matches parts of names, the other one since Reloader has no limits.
func TestAllReasonsOfADifferenceAreReported(t *testing.T) {
	t.Parallel()
	in := input(t, deployment(`configmap.`+domain+`reload: "app|none,app-eu|`+strings.Repeat("x", 2000)+`"`, noRefs))
	assert.Equal(t, []string{
		"expression: configmap/app-eu modified restart nothing", "problem", "rejected-item: configmap/app-eu modified restart nothing",
	}, summary(plan.Compare(in)))
}

// A list tracks an object that exists as well as one that does not: only for an expression, a creation is an example of what may come.
func TestObjectThatExistsIsNotCreated(t *testing.T) {
	t.Parallel()
	in := input(t, deployment(auto, reads))
	dialect := in.Reloader.Dialect
	dialect.ReloadOnCreate = true
	speak(&in, dialect)
	assert.Empty(t, plan.Compare(in).Groups)
}

func TestProblemsOfAWorkloadThatIsNotHandledAreNotReported(t *testing.T) {
	t.Parallel()
	manifest := deployment(auto+`, secret.`+domain+`reload: "("`, reads)
	in := input(t, manifest)
	assert.Equal(t, []string{"problem"}, summary(plan.Compare(in)))
	in.Here.Scope = scope.Scope{Ignored: []string{"shop"}}
	assert.Equal(t, []string{"namespace: configmap/app modified restart nothing"}, summary(plan.Compare(in)))
	in = input(t, strings.Replace(manifest, "name: cart\n", "name: cart\n  labels: {pod-reloader.cs.sap.com/ignored: \"true\"}\n", 1))
	assert.Equal(t, []string{"excluded-label: configmap/app modified restart nothing"}, summary(plan.Compare(in)))
}

// Creations and deletions of what the list names are posted, too.
func TestObjectOfWhichEachChangeIsPostedIsNotUnnamed(t *testing.T) {
	t.Parallel()
	in := input(t, deployment("pod-reloader.cs.sap.com/configmaps: app", noRefs))
	in.Objects = map[string]map[reference.Ref]annotation.Traits{"shop": {cm("app"): {}, cm("other"): {}}}
	in.Reloader.NotifyOnly, in.Here.NotifyOnly = true, true
	var unnamed []plan.Object
	for _, g := range plan.Compare(in).Groups {
		unnamed = append(unnamed, g.Objects...)
	}
	assert.Equal(t, []plan.Object{{Kind: "configmap", Namespace: "shop", Name: "other"}}, unnamed)
}

func TestTextNamesALimitedNumber(t *testing.T) {
	t.Parallel()
	text := func(changes, workloads, objects int) string {
		workload := plan.Difference{Kind: "Deployment", Name: "cart", Namespace: "shop", Effects: make([]plan.Effect, changes)}
		group := plan.Group{Objects: make([]plan.Object, objects)}
		for range workloads {
			group.Workloads = append(group.Workloads, workload)
		}
		var text strings.Builder
		assert.NoError(t, plan.Report{Groups: []plan.Group{group}}.Write(&text))
		return text.String()
	}
	all := text(5, 50, 50)
	assert.NotContains(t, all, "more")
	assert.NotContains(t, all, "Settings of Reloader", "there are none")
	for _, more := range []string{text(6, 1, 0), text(0, 51, 0), text(0, 0, 51)} {
		assert.Contains(t, more, "and 1 more ")
		assert.Contains(t, more, ": -o json lists them\n")
	}
	assert.Contains(t, text(0, 0, 52), "  and 2 more objects: -o json lists them\n")
}
