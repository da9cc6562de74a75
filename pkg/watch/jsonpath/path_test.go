package jsonpath_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watch/jsonpath"
)

func parse(t *testing.T, expression string) jsonpath.Path {
	t.Helper()
	path, fault := jsonpath.Parse(expression)
	require.Nil(t, fault, expression)
	return path
}

func TestSplitCutsTheLastFieldOff(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]struct {
		parent, field string
		plain         bool
	}{
		"metadata.name":             {"metadata", "name", true},
		"$.spec['a.b']":             {"$.spec", "a.b", true},
		`spec.a\.b`:                 {"spec", "a.b", true},
		"name":                      {"", "name", true},
		"spec.refs[*].name":         {"spec.refs[*]", "name", false},
		`spec.refs[?(@.a=="b")].to`: {`spec.refs[?(@.a=="b")]`, "to", false},
	} {
		parent, field, position := parse(t, expression).Split()
		assert.Equal(t, want.field, field, expression)
		assert.Equal(t, want.parent, parent.String(), expression)
		assert.Equal(t, want.plain, parent.Plain(), expression)
		assert.Zero(t, position, expression)
	}
	_, _, position := parse(t, "spec.refs[*]").Split()
	assert.Equal(t, len("spec.refs["), position, "the step that is no field")
}

func TestPathOfTheObjectHasNoLastField(t *testing.T) {
	t.Parallel()
	parent, _, _ := parse(t, "name").Split()
	_, _, position := parent.Split()
	assert.Equal(t, 1, position)
}

func TestParentOfOneFieldIsTheObject(t *testing.T) {
	t.Parallel()
	parent, field, _ := parse(t, "name").Split()
	object := map[string]any{"name": "a"}
	var found []any
	parent.Find(object, func(value any) { found = append(found, value) })
	assert.Equal(t, []any{object}, found)
	assert.Equal(t, "name", field)
}

func TestEqualPathsLeadToTheSameFields(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{
		{"a.b", "$.a['b']"},
		{`a.b\.c`, "a['b.c']"},
		{"a[*]", "a.*"},
		{`a[?(@.b=="c")].d`, `.a[?(@.b == 'c')]['d']`},
		{`a[?(@.b==80)].d`, `a[?(@.b=="80")].d`},
		{`a[?(@.b==80.0)].d`, `a[?(@.b==80)].d`},
		{`a[?(@.b!=8e1)].d`, `a[?(@.b!=80)].d`},
		{`a[?(@.b==0.10)].d`, `a[?(@.b==0.1)].d`},
		{`a[?(@.b==9007199254740993)].d`, `a[?(@.b=="9007199254740993")].d`},
	} {
		assert.True(t, parse(t, same[0]).Equal(parse(t, same[1])), same)
	}
	for _, different := range [][2]string{
		{"a.b", "a.c"},
		{"a.b", "a.b.c"},
		{"a[0]", "a[1]"},
		{"a[0]", "a[*]"},
		{`a[?(@.b=="c")]`, `a[?(@.b!="c")]`},
		{`a[?(@.b=="c")]`, `a[?(@.b=="d")]`},
		{`a[?(@.b=="c")]`, `a[?(@.e=="c")]`},
		{`a[?(@.b)]`, `a[?(@.b=="")]`},
	} {
		assert.False(t, parse(t, different[0]).Equal(parse(t, different[1])), different)
	}
}

// The watch reports faults with their positions, so that a user finds them in a long expression.
func TestFaultsHaveThePositionOfTheByte(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]jsonpath.Fault{
		"":                  {Position: 0, Reason: "is empty"},
		"$":                 {Position: 0, Reason: "names no field"},
		"a.":                {Position: 3, Reason: "a field's name is missing"},
		"a..b":              {Position: 3, Reason: "recursive descent"},
		"a b":               {Position: 2, Reason: `unexpected ' '`},
		"a)":                {Position: 2, Reason: `unexpected ')'`},
		"a{b}":              {Position: 2, Reason: "braces"},
		`ab\`:               {Position: 3, Reason: "a backslash needs a character"},
		"a[0]b":             {Position: 5, Reason: `unexpected 'b'`},
		"a[0":               {Position: 2, Reason: "the bracket is not closed"},
		"a[]":               {Position: 3, Reason: `"" is no index`},
		"a[b]":              {Position: 3, Reason: `"b" is no index`},
		"a[0:1]":            {Position: 3, Reason: "slices"},
		"a[0,1]":            {Position: 3, Reason: "unions"},
		"a['b":              {Position: 3, Reason: "the quote is not closed"},
		`a['b\`:             {Position: 3, Reason: "the quote is not closed"},
		`a['b\'`:            {Position: 3, Reason: "the quote is not closed"},
		"a['b'c]":           {Position: 6, Reason: "] is missing"},
		"a['b'":             {Position: 6, Reason: "] is missing"},
		"a[?b]":             {Position: 3, Reason: "a filter begins with"},
		"a[?(@)]":           {Position: 6, Reason: "the filter names no field"},
		"a[?(@.b=1)]":       {Position: 8, Reason: "a filter compares with"},
		"a[?(@.b=":          {Position: 8, Reason: "a filter compares with"},
		`a[?(@.b=="c)]`:     {Position: 10, Reason: "the quote is not closed"},
		"a[?(@.b==c)]":      {Position: 10, Reason: "compare with a text"},
		"a[?(@.b==0x1)]":    {Position: 10, Reason: "compare with a text"},
		"a[?(@.b==)]":       {Position: 10, Reason: "compare with a text"},
		`a[?(@.b=="c")`:     {Position: 13, Reason: "the filter is not closed"},
		`a[?(@.b["c)]`:      {Position: 9, Reason: "the quote is not closed"},
		`a[?(@.b\=="c")]`:   {Position: 10, Reason: "a filter compares with"},
		`a[?(@.b['=='] c)]`: {Position: 15, Reason: "a filter compares with"},
	} {
		_, fault := jsonpath.Parse(expression)
		if assert.NotNil(t, fault, expression) {
			assert.Equal(t, want.Position, fault.Position, "%s: %s", expression, fault.Reason)
			assert.Contains(t, fault.Reason, want.Reason, expression)
		}
	}
}

// The cost of filters grows with the square of their number.
func TestTooLongExpressionIsAFault(t *testing.T) {
	t.Parallel()
	expression := func(length int) string { return strings.Repeat("a", length) }
	parse(t, expression(jsonpath.MaxLength))
	_, fault := jsonpath.Parse(expression(jsonpath.MaxLength + 1))
	require.NotNil(t, fault)
	assert.Equal(t, jsonpath.Fault{Reason: "is longer than 4096 bytes"}, *fault)
}

func TestReadsListsOnePathForEachFilter(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string][]string{
		"a.b":                       nil,
		"a[?(@.x)][?(@.y)].b":       {"a[*].x", "a[?(@.x)][*].y"},
		"a[?(@.x[?(@.y)].z==1)].b":  {"a[*].x[?(@.y)].z", "a[*].x[*].y"},
		"a[?(@.x[?(@.y[?(@.z)])])]": {"a[*].x[?(@.y[?(@.z)])]", "a[*].x[*].y[?(@.z)]", "a[*].x[*].y[*].z"},
		"a[?(@.x[?(@.y)][?(@.z)])]": {"a[*].x[?(@.y)][?(@.z)]", "a[*].x[*].y", "a[*].x[?(@.y)][*].z"},
	} {
		path := parse(t, expression)
		reads := path.Reads()
		require.Len(t, reads, 1+len(want), expression)
		assert.True(t, reads[0].Equal(path), expression)
		for i, w := range want {
			assert.True(t, reads[i+1].Equal(parse(t, w)), "%s: %s", expression, w)
		}
	}
	assert.Len(t, parse(t, "a"+strings.Repeat("[?(@.x)]", 20)).Reads(), 21)
}

// What a path finds is what it removes, and what the path of an operator's left side reads.
func TestFindAndRemove(t *testing.T) {
	t.Parallel()
	object := func() map[string]any {
		item := func(kind string, port any) any { return map[string]any{"kind": kind, "port": port} }
		return map[string]any{
			"name": "n", "a.b": "dotted", "it's": "quoted",
			"items": []any{item("x", int64(80)), item("y", nil), item("x", 0.5), map[string]any{"port": true}},
			"maps":  map[string]any{"q": map[string]any{"port": "2"}, "p": map[string]any{"port": "1"}},
			"names": []any{"s", map[string]any{"port": "3"}},
			"deep":  []any{map[string]any{"name": "found", "list": []any{item("x", "1")}}, map[string]any{"name": "other", "list": []any{item("y", "1")}}},
		}
	}
	for expression, want := range map[string][]string{
		"name":                          {"n"},
		"$.name":                        {"n"},
		"name.port":                     nil,
		"items.port":                    nil,
		"none.port":                     nil,
		`a\.b`:                          {"dotted"},
		"['a.b']":                       {"dotted"},
		`['it\'s']`:                     {"quoted"},
		"items[0].port":                 {"80"},
		"items[-1].port":                {"true"},
		"items[-4].port":                {"80"},
		"items[4].port":                 nil,
		"items[-5].port":                nil,
		"items[*].port":                 {"80", "0.5", "true"},
		"maps.*.port":                   {"1", "2"},
		"names[*].port":                 {"3"},
		`items[?(@.kind=="x")].port`:    {"80", "0.5"},
		`items[?(@.kind!="x")].kind`:    {"y"},
		`items[?(@.kind)].port`:         {"80", "0.5"},
		`items[?(@.port==80)].kind`:     {"x"},
		`items[?(@.port != 80.0)].kind`: {"x"},
		`deep[?(@.list[?(@.kind=="x")].port=="1")].name`: {"found"},
		`items[?(@.port==true)].port`:                    {"true"},
		`items[?(@['port'] == "0.5")].kind`:              {"x"},
	} {
		path := parse(t, expression)
		find := func(root map[string]any) (found []string) {
			path.Find(root, func(value any) { found = append(found, jsonpath.Text(value)) })
			return found
		}
		root := object()
		assert.Equal(t, want, find(root), expression)
		jsonpath.Remove(root, []jsonpath.Path{path})
		assert.Empty(t, find(root), "%s: after it is removed", expression)
		if want == nil {
			assert.Equal(t, object(), root, "%s: nothing else is removed", expression)
		}
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	for paths, want := range map[[2]string]bool{
		{"a", "a.b"}: true, {"a.b", "a"}: true, {"a.b", "a.c"}: false, {"a[*]", "a.c"}: true,
		{"a[0].b", "a[1].b"}: false, {"a[0].b", "a[0].b"}: true, {"a[0].b", "a[-1].b"}: true, {"a[-1].b", "a[-2].b"}: false,
		{"a[-1].b", "a[0].b"}: true, {"a[0].b", "a.c.b"}: false, {"a.c.b", "a[0].b"}: false, {"a[?(@.b)].c", "a[0].c"}: true,
		{"a[1].b", "a[*].b"}: true, {"a.*.b", "a.c.b"}: true, {"a.c.b", "a.*.b"}: true, {"a[?(@.b)].c", "a.c.c"}: false,
	} {
		assert.Equal(t, want, parse(t, paths[0]).Overlaps(parse(t, paths[1])), paths)
	}
	path := parse(t, `a[?(@.b=="c")].d`)
	assert.Equal(t, []string{"a", "d"}, path.Names())
	reads := path.Reads()
	require.Len(t, reads, 2, "the path, and what its filter compares")
	assert.True(t, reads[1].Equal(parse(t, "a[*].b")), "what the filter compares is b of each element")
}

func TestOperator(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"a=b": 1, "a==b": 1, "a!=b": 1, "a": -1, "a!b": -1, "a,b=c": -1, `a\=b=c`: 4, `a[?(@.b=="]=")]=c`: 15, "a]=b": 2, "a[[0]]=b": 6,
		"a['=": -1, "it's=b": 4,
	} {
		assert.Equal(t, want, jsonpath.Operator(text), text)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]any{"a": "a", "true": true, "-7": int64(-7), "100000000": 1e8, "": nil, `{"a":["b"]}`: map[string]any{"a": []any{"b"}}} {
		assert.Equal(t, want, jsonpath.Text(value))
	}
}
