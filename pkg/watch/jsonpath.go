package watch

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// path is a compiled JSONPath expression. It has no state: any number of
// goroutines may evaluate it.
//
// client-go's evaluator is not used, because it reports no positions, cannot
// remove, fails on ['a.b/c'] and on an index out of range, and keeps state.
type path struct {
	text  string
	steps []step
	// plain says that there are fields alone, so that there is one value at
	// most. That is most paths, and quicker.
	plain bool
}

type stepKind int

const (
	stepField  stepKind = iota // .name and ['name']
	stepIndex                  // [2], [-1]
	stepEvery                  // .* and [*]
	stepFilter                 // [?(@.name=="x")]
)

type step struct {
	kind   stepKind
	at     int // position in the expression, counted from 1
	name   string
	index  int
	filter filter
}

// branches reports whether the step is no field of a map.
func (s step) branches() bool {
	return s.kind != stepField
}

// filter chooses items of a list by a field of theirs.
type filter struct {
	path    []step
	compare bool // else: the field exists
	negate  bool
	literal string
}

// find calls visit with every value at the path, in the order of the document
// (of the keys for a map). Null counts as missing.
func (p path) find(root map[string]any, visit func(any)) {
	walk(root, p.steps, visit)
}

// field is the value at a plain path, nil if there is none.
func (p path) field(root map[string]any) any {
	return descend(root, p.steps)
}

func descend(root map[string]any, steps []step) any {
	var value any = root
	for i := range steps {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[steps[i].name]
	}
	return value
}

func walk(value any, steps []step, visit func(any)) {
	if value == nil {
		return
	}
	if len(steps) == 0 {
		visit(value)
		return
	}
	rest := steps[1:]
	switch steps[0].kind {
	case stepField:
		if fields, ok := value.(map[string]any); ok {
			walk(fields[steps[0].name], rest, visit)
		}
	case stepEvery:
		every(value, func(item any) { walk(item, rest, visit) })
	case stepIndex, stepFilter:
		items, _ := value.([]any)
		for i, item := range items {
			if steps[0].chooses(i, items) {
				walk(item, rest, visit)
			}
		}
	}
}

func every(value any, visit func(any)) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			visit(item)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			visit(value[key])
		}
	}
}

// chooses reports whether the step leads to the i-th item; an index may count
// from the end.
func (s step) chooses(i int, items []any) bool {
	if s.kind == stepFilter {
		return s.filter.matches(items[i])
	}
	return i == s.index || i == s.index+len(items)
}

// matches: a missing field matches no comparison, not even !=.
func (f filter) matches(item any) bool {
	found := false
	walk(item, f.path, func(value any) {
		found = found || !f.compare || (text(value) == f.literal) != f.negate
	})
	return found
}

// remove deletes the field from every place that the path leads to; places
// that do not exist are passed over. The parser has seen to it that the last
// step is a field.
func (p path) remove(root map[string]any) {
	last := len(p.steps) - 1
	if p.plain {
		if fields, ok := descend(root, p.steps[:last]).(map[string]any); ok {
			delete(fields, p.steps[last].name)
		}
		return
	}
	walk(root, p.steps[:last], func(parent any) {
		if fields, ok := parent.(map[string]any); ok {
			delete(fields, p.steps[last].name)
		}
	})
}

// overlaps reports whether removing p changes what q reads. Steps that choose
// items of a list may always choose the same ones.
func (p path) overlaps(q path) bool {
	for i := range min(len(p.steps), len(q.steps)) {
		a, b := p.steps[i], q.steps[i]
		if a.kind == stepField && b.kind == stepField && a.name != b.name {
			return false
		}
		if a.kind == stepIndex && b.kind == stepIndex && a.index != b.index && a.index^b.index >= 0 {
			return false
		}
		if (a.kind == stepField) != (b.kind == stepField) && a.kind != stepEvery && b.kind != stepEvery {
			return false
		}
	}
	return true
}

// reads lists everything that evaluating the path looks at: itself, and what
// its filters compare.
func (p path) reads() []path {
	all := []path{p}
	for i, s := range p.steps {
		if s.kind == stepFilter {
			inner := slices.Concat(p.steps[:i], []step{{kind: stepEvery}}, s.filter.path)
			all = append(all, path{text: p.text, steps: inner}.reads()...)
		}
	}
	return all
}

// text is the form in which a value becomes a key or is compared: strings as
// they are, numbers without exponent, lists and maps as JSON.
func text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case bool:
		return strconv.FormatBool(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case nil:
		return ""
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "" // JSON came in, so JSON goes out
	}
	return string(encoded)
}
