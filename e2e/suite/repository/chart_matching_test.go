package repository

import (
	"fmt"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
