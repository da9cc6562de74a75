package watch_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/jsonpath"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// FuzzExpressions: whatever is written, it is rejected with a position inside
// the expression, or evaluated; and client-go's evaluator agrees, where it
// takes the expression and has one result.
func FuzzExpressions(f *testing.F) {
	for _, seed := range []string{
		"metadata.name", "$.a['b.c'].d", `a\.b`, "a[0].b", "a[-1]", "a[*].b", `a[?(@.b=="c")].d`, `a[?(@.b!='c')].d`, "a[?(@.b)]",
		"a..b", "{.a}", "a[", "['", "a.*", "[?(@", "a=b", "é.ü", "a[?(@.b[?(@.c)])]",
	} {
		f.Add(seed)
	}
	content := map[string]any{"a": []any{
		map[string]any{"b": "c", "d": "x", "e": int64(3)}, map[string]any{"b": "y", "d": "z"},
	}, "é": map[string]any{"ü": "u"}, "metadata": map[string]any{"name": "n"}}
	f.Fuzz(func(t *testing.T, expression string) {
		indexer, err := watch.NewIndexer(watch.IndexerConfig{IndexBy: []string{expression}})
		if err != nil {
			assertFault(t, err, "IndexBy[0]", expression)
			return
		}
		object := &unstructured.Unstructured{Object: runtimeCopy(content)}
		keys := indexer.Process(object)
		assert.Equal(t, content, object.Object, "nothing is changed")
		if theirs, ok := clientGo(expression, content); ok {
			assert.Equal(t, []watch.Key{{theirs}}, keys, expression)
		}
	})
}

// assertFault: the error names the field, the expression, a position in it or
// at its end, which is returned, and a reason.
func assertFault(t *testing.T, err error, field, expression string) int {
	t.Helper()
	var fault *watch.ConfigError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, field, fault.Field)
	assert.Equal(t, expression, fault.Expression)
	assert.GreaterOrEqual(t, fault.Position, 0)
	assert.LessOrEqual(t, fault.Position, utf8.RuneCountInString(expression)+1)
	assert.NotEmpty(t, fault.Reason)
	return fault.Position
}

// FuzzSelector: whatever is written, it is rejected with a position, or
// evaluated; any value can be written by escaping it; and terms joined by a
// comma hold where each of them does.
func FuzzSelector(f *testing.F) {
	for _, seed := range [][2]string{
		{"metadata.name=a", "a"},
		{"a!=b", ","},
		{`a==b\,c\=d\\`, `\`},
		{"a=[", "["},
		{`a[?(@.b=="c,d")].e=f`, "f,g=h"},
		{"a=b,c", ""},
		{"é=ü, éé..b=c", "é,ü"},
		{"a[b=c", "]"},
		{"=", "="},
		{`a['=,']=x`, "x"},
		{"a=b,", " "},
	} {
		f.Add(seed[0], seed[1])
	}
	escape := strings.NewReplacer(`\`, `\\`, ",", `\,`, "=", `\=`)
	f.Fuzz(func(t *testing.T, expression, value string) {
		value = strings.TrimSpace(value)
		u := object("a", with(value, "spec", "value"), with("b", "a"), with([]any{map[string]any{"b": "c", "e": "f"}}, "list"))
		for operator, want := range map[string]bool{"=": true, "==": true, "!=": false} {
			written, err := watch.NewSelector("spec.value" + operator + escape.Replace(value))
			require.NoError(t, err)
			assert.Equal(t, want, written.Matches(u))
		}
		selector, err := watch.NewSelector(expression)
		if err != nil {
			assert.Positive(t, assertFault(t, err, "FieldSelector", expression))
			return
		}
		if strings.TrimSpace(expression) == "" {
			return
		}
		for term, holds := range map[string]bool{"a=b": true, "a!=b": false} {
			for _, joined := range []string{expression + "," + term, term + "," + expression} {
				both, err := watch.NewSelector(joined)
				require.NoError(t, err, joined)
				assert.Equal(t, holds && selector.Matches(u), both.Matches(u), joined)
			}
		}
	})
}

// FuzzLabelSelector: what the API server would reject is rejected, with the
// position of the first requirement that is wrong.
func FuzzLabelSelector(f *testing.F) {
	for _, seed := range []string{
		"app=web", "app in (a,b),!c", "a=b,c in (d,e),=x", "a=b,", ",", "a=,b", "a notin (", "a),b", "x>1,y<é", "é=é",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		_, wrong := labels.Parse(expression)
		_, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName, LabelSelector: expression}, fakeClient())
		if wrong == nil {
			require.NoError(t, err)
			return
		}
		position := assertFault(t, err, "LabelSelector", expression)
		require.Positive(t, position)
		before := string([]rune(expression)[:position-1])
		_, err = labels.Parse(strings.TrimSuffix(before, ","))
		assert.NoError(t, err, "the text before the position is valid")
	})
}

func runtimeCopy(content map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: content}).DeepCopy().Object
}

// clientGo evaluates the subset that means the same to both: plain fields.
func clientGo(expression string, content map[string]any) (string, bool) {
	if strings.ContainsAny(expression, "[]\\*$ ") {
		return "", false
	}
	theirs := jsonpath.New("fuzz").AllowMissingKeys(true)
	if theirs.Parse("{."+strings.TrimPrefix(expression, ".")+"}") != nil {
		return "", false
	}
	found, err := theirs.FindResults(content)
	if err != nil || len(found) != 1 || len(found[0]) != 1 {
		return "", false
	}
	text, ok := found[0][0].Interface().(string)
	return text, ok
}
