package strategy

import (
	"slices"
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
)

// Operations returns the JSON patch that turns the variables of a pod template, which is at a JSON pointer, into those of
// the Fields. The Fields are those that On returns for the template. Only what differs is touched: a value is replaced
// where the variables are the same.
func (f Fields) Operations(template map[string]any, pointer string) []jsonpatch.Operation {
	var ops []jsonpatch.Operation
	variables := f.byContainer()
	for _, e := range environments(template) {
		ops = append(ops, e.operations(pointer+"/spec/containers/"+strconv.Itoa(e.at)+"/env", variables[e.container])...)
	}
	return ops
}

// operations returns the patch of one environment, which is at a JSON pointer.
func (e environment) operations(env string, want []Variable) []jsonpatch.Operation {
	same := func(a, b Variable) bool { return a.Name == b.Name && a.Index == b.Index }
	switch {
	case slices.EqualFunc(e.fields, want, same):
		return e.values(env, want)
	case len(want) == 0 && len(e.fields) == len(e.entries):
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", env, nil)}
	}
	var ops []jsonpatch.Operation
	for _, v := range slices.Backward(e.fields) {
		ops = append(ops, jsonpatch.NewOperation("remove", at(env, v), nil))
	}
	if e.entries == nil {
		ops = append(ops, jsonpatch.NewOperation("add", env, []any{}))
	}
	for _, v := range want {
		ops = append(ops, jsonpatch.NewOperation("add", at(env, v), map[string]any{"name": v.Name, "value": v.Value}))
	}
	return ops
}

// values replaces values only.
func (e environment) values(env string, want []Variable) []jsonpatch.Operation {
	var ops []jsonpatch.Operation
	for i, v := range want {
		if e.fields[i].Value != v.Value {
			ops = append(ops, jsonpatch.NewOperation("replace", at(env, v)+"/value", v.Value))
		}
	}
	return ops
}

func at(env string, v Variable) string { return env + "/" + strconv.Itoa(v.Index) }
