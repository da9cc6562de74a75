// Package jsonpath evaluates the part of JSONPath that leads to definite places
// of an object:
//
//	metadata.namespace                            fields
//	metadata.labels['app.kubernetes.io/name']     names with dots: quoted,
//	metadata.labels.app\.kubernetes\.io/name      or with backslashes
//	spec.rules[0].host, spec.rules[-1].host       one item, also from the end
//	spec.rules[*].host                            every item
//	status.conditions[?(@.type=="Ready")].status  selected items (==, !=, exists)
//
// It is the syntax of every expression of package watch, and part of that
// library: it imports the standard library only.
//
// client-go's evaluator is not used, because it reports no positions, cannot
// remove, fails on ['a.b/c'] and on an index out of range, and keeps state.
package jsonpath

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Path is a compiled expression. It has no state: any number of goroutines may
// evaluate it. The zero value leads to the object itself.
type Path struct {
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

// Find calls visit with every value at the path, in the order of the document
// (of the keys for a map). Null counts as missing.
func (p Path) Find(root map[string]any, visit func(any)) {
	walk(root, p.steps, visit)
}

// String is the expression as it was written.
func (p Path) String() string { return p.text }

// Plain reports whether there are fields alone, so that there is one value at
// most, which Field returns.
func (p Path) Plain() bool { return p.plain }

// Field is the value at a plain path, nil if there is none.
func (p Path) Field(root map[string]any) any {
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
		found = found || !f.compare || (Text(value) == f.literal) != f.negate
	})
	return found
}

// Remove deletes the last field of each path from every place that the path
// leads to; places that do not exist are passed over. All places are found
// first: the order does not matter, and no filter misses what it compares. The
// last step of each path must be a field, as Split reports.
func Remove(root map[string]any, paths []Path) {
	type place struct {
		fields map[string]any
		name   string
	}
	var places []place
	for _, p := range paths {
		last := len(p.steps) - 1
		walk(root, p.steps[:last], func(parent any) {
			if fields, ok := parent.(map[string]any); ok {
				places = append(places, place{fields, p.steps[last].name})
			}
		})
	}
	for _, p := range places {
		delete(p.fields, p.name)
	}
}

// Overlaps reports whether removing p changes what q reads. Steps that choose
// items of a list may always choose the same ones.
func (p Path) Overlaps(q Path) bool {
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

// Names are those of the fields on the path.
func (p Path) Names() []string {
	names := make([]string, 0, len(p.steps))
	for _, s := range p.steps {
		if s.kind == stepField {
			names = append(names, s.name)
		}
	}
	return names
}

// Split cuts the last field off; the parent of a path of one field is the object.
// Where the last step is no field, position is that of the step, counted from 1;
// 1 for the path of the object itself.
func (p Path) Split() (parent Path, field string, position int) {
	last := len(p.steps) - 1
	if last < 0 {
		return Path{}, "", 1
	}
	if step := p.steps[last]; step.kind != stepField {
		return Path{}, "", step.at
	}
	parent = Path{text: strings.TrimSuffix(p.text[:p.steps[last].at-1], "."), steps: p.steps[:last]}
	parent.plain = !slices.ContainsFunc(parent.steps, step.branches)
	return parent, p.steps[last].name, 0
}

// Equal reports whether both lead to the same places, however they are written.
func (p Path) Equal(q Path) bool { return slices.EqualFunc(p.steps, q.steps, step.equal) }

func (s step) equal(o step) bool {
	return s.kind == o.kind && s.name == o.name && s.index == o.index && s.filter.equal(o.filter)
}

func (f filter) equal(o filter) bool {
	return f.compare == o.compare && f.negate == o.negate && f.literal == o.literal && slices.EqualFunc(f.path, o.path, step.equal)
}

// Reads lists everything that evaluating the path looks at: itself, and what
// its filters compare. That is one path for each filter.
func (p Path) Reads() []Path {
	all := []Path{p}
	compared(nil, p.steps, func(steps []step) { all = append(all, Path{text: p.text, steps: steps}) })
	return all
}

// compared calls visit with the path of what each filter in the steps compares. Those steps
// follow the prefix.
func compared(prefix, steps []step, visit func([]step)) {
	for i, s := range steps {
		if s.kind == stepFilter {
			item := slices.Concat(prefix, steps[:i], []step{{kind: stepEvery}})
			visit(slices.Concat(item, s.filter.path))
			compared(item, s.filter.path, visit)
		}
	}
}

// Text is the form in which a value becomes a key or is compared: strings as
// they are, numbers without exponent, lists and maps as JSON.
func Text(value any) string {
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
