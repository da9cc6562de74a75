package apiserver

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// compile prepares match conditions. The environment has the variables object, oldObject and request, and of the libraries
// of Kubernetes the strings and lists of CEL itself.
func compile(conditions []admissionregistrationv1.MatchCondition) ([]condition, error) {
	if len(conditions) == 0 {
		return nil, nil
	}
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		ext.Strings(), ext.Lists(), ext.Sets(),
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType),
	)
	if err != nil {
		return nil, fmt.Errorf("make the environment of match conditions: %w", err)
	}
	var compiled []condition
	for _, c := range conditions {
		ast, issues := env.Compile(c.Expression)
		if err := issues.Err(); err != nil {
			return nil, fmt.Errorf("compile match condition %s: %w", c.Name, err)
		}
		if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
			return nil, fmt.Errorf("match condition %s: the expression is a %s, not a bool", c.Name, t)
		}
		program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			return nil, fmt.Errorf("plan match condition %s: %w", c.Name, err)
		}
		compiled = append(compiled, condition{c.Name, program})
	}
	return compiled, nil
}

// match evaluates the conditions: one that is false decides, whatever errors others have.
func (h *hook) match(q *request, r *review) (bool, error) {
	if len(h.conditions) == 0 {
		return true, nil
	}
	variables := map[string]any{"object": nullable(nil), "oldObject": nullable(nil), "request": func() any { return q.variable(r) }}
	if r.object != nil {
		variables["object"] = nullable(r.forms(q.kind).object())
	}
	if r.old != nil {
		variables["oldObject"] = nullable(r.old.object())
	}
	var errs []error
	for _, c := range h.conditions {
		value, _, err := c.program.Eval(variables)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("match condition %s: %w", c.name, err))
		case value == types.False:
			return false, nil
		case value != types.True:
			errs = append(errs, fmt.Errorf("match condition %s: not a bool", c.name))
		}
	}
	return len(errs) == 0, errors.Join(errs...)
}

// nullable makes a missing object a null, which CEL knows.
func nullable(object map[string]any) any {
	if object == nil {
		return types.NullValue
	}
	return object
}

// variable is the request as conditions see it.
func (q *request) variable(r *review) map[string]any {
	gvk := map[string]any{"group": q.kind.Group, "version": q.kind.Version, "kind": q.kind.Kind}
	gvr := map[string]any{"group": q.kind.Group, "version": q.kind.Version, "resource": q.kind.Plural}
	return map[string]any{
		"kind": gvk, "resource": gvr, "subResource": q.subresource, "requestKind": gvk, "requestResource": gvr,
		"requestSubResource": q.subresource, "name": r.name(q), "namespace": r.namespace(q), "operation": string(r.operation),
		"userInfo": map[string]any{"username": q.call.Client, "groups": []string{"system:authenticated"}},
		"dryRun":   q.call.DryRun,
	}
}
