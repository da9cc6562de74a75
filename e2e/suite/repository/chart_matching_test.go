package repository

import (
	"fmt"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// matches evaluates the conditions of the webhook for the creation of an object.
func matches(t *testing.T, rendered objects, object map[string]any) bool {
	t.Helper()
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.OptionalTypes(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType))
	require.NoError(t, err)
	hook := list(rendered["MutatingWebhookConfiguration /pod-reloader"]["webhooks"])[0].(map[string]any)
	for _, condition := range list(hook["matchConditions"]) {
		ast, issues := env.Compile(condition.(map[string]any)["expression"].(string))
		require.NoError(t, issues.Err())
		program, err := env.Program(ast)
		require.NoError(t, err)
		value, _, err := program.Eval(map[string]any{"object": object, "oldObject": nil})
		require.NoError(t, err)
		if value.Value() != true {
			return false
		}
	}
	return true
}

// The annotations of a template count wherever a kind has it: without the path, such a write is not sent.
func TestChartSendsWorkloadsThatAreAnnotatedOnTheTemplateOfAFurtherKind(t *testing.T) {
	t.Parallel()
	var values []string
	for n, path := range []string{"spec.workload.template", ".spec.pod-template", "spec.template"} {
		item := fmt.Sprintf("workloadKinds[%d].", n)
		values = append(values, item+fmt.Sprintf("apiVersion=k%d.io/v1", n), item+"kind=Fleet", item+"template="+path, item+"resource=fleets")
	}
	rendered := template(t, tool(t, "helm", "helm"), values...)
	annotated := func(key string) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: "true"}}}
	}
	const auto = "reloader.stakater.com/auto"
	for name, tc := range map[string]struct {
		spec map[string]any
		sent bool
	}{
		"deeper":                  {map[string]any{"workload": map[string]any{"template": annotated(auto)}}, true},
		"with a hyphen":           {map[string]any{"pod-template": annotated(auto)}, true},
		"where built-in kinds do": {map[string]any{"template": annotated(auto)}, true},
		"another annotation":      {map[string]any{"workload": map[string]any{"template": annotated("a")}}, false},
		"elsewhere":               {map[string]any{"other": annotated(auto)}, false},
		"annotations are null":    {map[string]any{"workload": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": nil}}}, "pod-template": annotated(auto)}, true},
		"nothing but null":        {map[string]any{"workload": map[string]any{"template": map[string]any{"metadata": nil}}, "pod-template": nil, "template": map[string]any{"metadata": map[string]any{"annotations": nil}}}, false},
		"without metadata":        {map[string]any{"workload": map[string]any{"template": map[string]any{}}}, false},
	} {
		assert.Equal(t, tc.sent, matches(t, rendered, map[string]any{"metadata": map[string]any{"name": "web"}, "spec": tc.spec}), name)
	}
	assert.False(t, matches(t, rendered, map[string]any{}), "no field is needed")
	assert.False(t, matches(t, rendered, map[string]any{"spec": nil}), "a field can be null")
}

// byWorkloads are values by which a label or an owner says that a workload runs with a custom resource.
var byWorkloads = []string{
	"referents[0].id=a", "referents[0].gvr.group=a.io", "referents[0].gvr.version=v1", "referents[0].gvr.resource=as",
	"referents[0].workloads.ownedBy=true", "referents[0].workloads.selector=app.kubernetes.io/instance={name}",
}

// The Deployment of the release has the label of many selectors. With failurePolicy Fail, it could not be repaired if it were sent.
func TestChartDoesNotSendItsOwnDeploymentForALabel(t *testing.T) {
	t.Parallel()
	rendered := template(t, tool(t, "helm", "helm"), append(byWorkloads, "webhook.failurePolicy=Fail")...)
	for name, tc := range map[string]struct {
		change func(o *unstructured.Unstructured)
		sent   bool
	}{
		"as rendered":       {func(*unstructured.Unstructured) {}, false},
		"another owner":     {func(o *unstructured.Unstructured) { own(o, "b.io/v1") }, false},
		"owner":             {func(o *unstructured.Unstructured) { own(o, "a.io/v1") }, false},
		"annotation":        {func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{ours: "a"}) }, true},
		"another name":      {func(o *unstructured.Unstructured) { o.SetName("b") }, true},
		"another namespace": {func(o *unstructured.Unstructured) { o.SetNamespace("b") }, true},
		"another kind":      {func(o *unstructured.Unstructured) { o.SetKind("StatefulSet") }, true},
		"a generated name":  {func(o *unstructured.Unstructured) { o.SetName("") }, true},
		"another label":     {func(o *unstructured.Unstructured) { o.SetName("b"); o.SetLabels(nil) }, false},
		"owner of another": {func(o *unstructured.Unstructured) {
			o.SetName("b")
			o.SetLabels(nil)
			own(o, "a.io/v1")
		}, true},
	} {
		object := (&unstructured.Unstructured{Object: rendered[deployment]}).DeepCopy()
		tc.change(object)
		assert.Equal(t, tc.sent, matches(t, rendered, object.Object), name)
	}
}

func own(o *unstructured.Unstructured, apiVersion string) {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: "A", Name: "a", UID: "a"}})
}

// doesNotAskAboutItself is the same on an API server.
func doesNotAskAboutItself(t *testing.T, cluster *controlplane.ControlPlane) {
	t.Helper()
	api, rendered := cluster.Client(), template(t, tool(t, "helm", "helm"), byWorkloads...)
	seen := register(t, api, rendered)
	for name, sent := range map[string]bool{"pod-reloader": false, "another": true} {
		object := (&unstructured.Unstructured{Object: rendered[deployment]}).DeepCopy()
		object.SetName(name)
		require.NoError(t, api.Create(t.Context(), object))
		require.NoError(t, api.Patch(t.Context(), object, merging(`{"spec":{"replicas":3}}`)))
		assert.Equal(t, sent, seen.has(object, admissionv1.Create), name)
		assert.Equal(t, sent, seen.has(object, admissionv1.Update), name)
	}
}
