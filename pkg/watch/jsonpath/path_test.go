package jsonpath_test

import (
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
