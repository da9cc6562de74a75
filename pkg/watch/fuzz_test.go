package watch_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
			var fault *watch.ConfigError
			require.ErrorAs(t, err, &fault)
			assert.LessOrEqual(t, fault.Position, len(expression)+1)
			return
		}
		object := &unstructured.Unstructured{Object: runtimeCopy(content)}
		key := indexer.Process(object)[0]
		assert.Equal(t, content, object.Object, "nothing is changed")
		if theirs, ok := clientGo(expression, content); ok {
			assert.Equal(t, theirs, key, expression)
		}
		_, err = watch.NewSelector(strings.ReplaceAll(expression, ",", "") + "=x")
		_ = err // no panic
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
