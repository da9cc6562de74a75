package watch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func TestBadConfigurationIsRejectedAtCreation(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*watch.Config)
		want   string // field, expression and position
	}{
		"no index":                    {func(c *watch.Config) { c.IndexBy = nil }, `IndexBy: is empty; name at least one field`},
		"an empty expression":         {func(c *watch.Config) { c.IndexBy = []string{"metadata.name", ""} }, `IndexBy[1]: is empty; write a path`},
		"braces":                      {func(c *watch.Config) { c.IndexBy = []string{"{.metadata.name}"} }, `IndexBy[0] "{.metadata.name}", character 1: braces`},
		"braces later":                {func(c *watch.Config) { c.IndexBy = []string{"metadata.name}x"} }, `IndexBy[0] "metadata.name}x", character 14: braces`},
		"a bracket not closed":        {func(c *watch.Config) { c.IndexBy = []string{"spec.a[1"} }, `character 7: the bracket is not closed`},
		"a quote not closed":          {func(c *watch.Config) { c.IndexBy = []string{"spec['a]"} }, `character 6: the quote is not closed`},
		"no index in brackets":        {func(c *watch.Config) { c.IndexBy = []string{"spec[a]"} }, `character 6: "a" is no index`},
		"a slice":                     {func(c *watch.Config) { c.IndexBy = []string{"spec.a[1:2]"} }, `character 8: slices are not supported`},
		"a union":                     {func(c *watch.Config) { c.IndexBy = []string{"spec.a[1,2]"} }, `character 8: unions are not supported`},
		"recursive descent":           {func(c *watch.Config) { c.IndexBy = []string{"spec..a"} }, `character 6: recursive descent is not supported`},
		"a dot at the end":            {func(c *watch.Config) { c.IndexBy = []string{"spec.a."} }, `character 8: a field's name is missing`},
		"a blank":                     {func(c *watch.Config) { c.IndexBy = []string{"spec. a"} }, `character 6: unexpected ' '`},
		"a backslash at the end":      {func(c *watch.Config) { c.IndexBy = []string{`spec\`} }, `character 5: a backslash needs`},
		"the whole object":            {func(c *watch.Config) { c.IndexBy = []string{"$"} }, `IndexBy[0] "$": names no field`},
		"an operator not known":       {func(c *watch.Config) { c.IndexBy = []string{"a[?(@.b<2)].c"} }, `character 8: a filter compares with == or !=`},
		"no number":                   {func(c *watch.Config) { c.IndexBy = []string{"a[?(@.b==Inf)].c"} }, `character 10: compare with a text in quotes, a number`},
		"not a number":                {func(c *watch.Config) { c.IndexBy = []string{"a[?(@.b==NaN)].c"} }, `character 10: compare with a text in quotes, a number`},
		"a hexadecimal number":        {func(c *watch.Config) { c.IndexBy = []string{"a[?(@.b==0x1p4)].c"} }, `character 10: compare with a text in quotes, a number`},
		"a filter not closed":         {func(c *watch.Config) { c.IndexBy = []string{`a[?(@.b=="x"].c`} }, `character 13: the filter is not closed`},
		"a filter without field":      {func(c *watch.Config) { c.IndexBy = []string{`a[?(@=="x")].c`} }, `character 6: the filter names no field`},
		"a literal not quoted":        {func(c *watch.Config) { c.IndexBy = []string{`a[?(@.b==x)].c`} }, `character 10: compare with a text in quotes`},
		"an ignored item":             {func(c *watch.Config) { c.IgnoreFields = []string{"spec.rules[0]"} }, `IgnoreFields[0] "spec.rules[0]", character 11: only fields are removed`},
		"an ignored field of the key": {func(c *watch.Config) { c.IndexBy, c.IgnoreFields = []string{"spec.a.b"}, []string{"x", "spec.a"} }, `IgnoreFields[1] "spec.a", character 1: IndexBy[0] "spec.a.b" reads spec.a.b; it cannot be ignored`},
		"a part of the key ignored":   {func(c *watch.Config) { c.IndexBy, c.IgnoreFields = []string{"spec.a"}, []string{"spec.a.b"} }, `IgnoreFields[0] "spec.a.b"`},
		"ignored under a wildcard":    {func(c *watch.Config) { c.IndexBy, c.IgnoreFields = []string{"a[0].b"}, []string{"a[*].b"} }, `IgnoreFields[0] "a[*].b"`},
		"ignored, but compared": {func(c *watch.Config) {
			c.IndexBy, c.IgnoreFields = []string{`a[?(@.type=="x")].b`}, []string{"a[*].type"}
		}, `IgnoreFields[0] "a[*].type", character 1: IndexBy[0]`},
		"ignored, but selected": {func(c *watch.Config) { c.FieldSelector, c.IgnoreFields = "spec.a=1", []string{"spec"} }, `IgnoreFields[0] "spec", character 1: FieldSelector "spec.a=1" reads spec.a`},
		"ignored, but needed":   {func(c *watch.Config) { c.IgnoreFields = []string{"metadata"} }, `IgnoreFields[0] "metadata", character 1: every watcher reads metadata.name`},
		"a label selector":      {func(c *watch.Config) { c.LabelSelector = "a=b,c in (d,e),=x" }, `LabelSelector "a=b,c in (d,e),=x", character 16:`},
		"a label missing":       {func(c *watch.Config) { c.LabelSelector = "a=b," }, `LabelSelector "a=b,", character 5: a requirement is missing`},
		"a label's value":       {func(c *watch.Config) { c.LabelSelector = "a=b!" }, `LabelSelector "a=b!", character 1:`},
		"no operator":           {func(c *watch.Config) { c.FieldSelector = "a=b,c" }, `FieldSelector "a=b,c", character 5: is no term`},
		"no path":               {func(c *watch.Config) { c.FieldSelector = "=b" }, `FieldSelector "=b", character 1: is empty`},
		"a selector's path":     {func(c *watch.Config) { c.FieldSelector = "a=b, c.d[x]!=e" }, `FieldSelector "a=b, c.d[x]!=e", character 10: "x" is no index`},
		"a selector's value":    {func(c *watch.Config) { c.FieldSelector = "a=b,c==d=e" }, `FieldSelector "a=b,c==d=e", character 9: '='`},
		"a term missing":        {func(c *watch.Config) { c.FieldSelector = "a=b," }, `FieldSelector "a=b,", character 5: is no term`},
		"no resource":           {func(c *watch.Config) { c.GVR.Resource = "" }, `GVR.Resource: is missing in`},
		"a kind as resource":    {func(c *watch.Config) { c.GVR.Resource = "Ingress" }, `GVR.Resource "Ingress":`},
		"no version":            {func(c *watch.Config) { c.GVR.Version = "" }, `GVR.Version: is missing in`},
		"a bad group":           {func(c *watch.Config) { c.GVR.Group = "a/b" }, `GVR.Group "a/b":`},
		"a bad namespace":       {func(c *watch.Config) { c.Namespace = "a b" }, `Namespace "a b":`},
		"a negative interval":   {func(c *watch.Config) { c.DebounceInterval = -time.Second }, `DebounceInterval "-1s": is negative`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := watch.Config{GVR: ingresses, IndexBy: byName}
			c.change(&config)
			_, err := watch.NewBulk(config, fakeClient())
			require.ErrorContains(t, err, c.want)
			var fault *watch.ConfigError
			require.ErrorAs(t, err, &fault)
		})
	}
}

func TestEveryFaultIsReported(t *testing.T) {
	t.Parallel()
	_, err := watch.NewBulk(watch.Config{LabelSelector: "!", FieldSelector: "x", IndexBy: []string{"a..b", "{"}}, nil)
	for _, field := range []string{"client", "GVR.Version", "GVR.Resource", "LabelSelector", "FieldSelector", "IndexBy[0]", "IndexBy[1]"} {
		require.ErrorContains(t, err, field)
	}
	_, err = watch.NewSingle(watch.SingleConfig{GVR: schema.GroupVersionResource{Version: "v1"}, Name: "a/b"}, nil)
	for _, field := range []string{"client", "GVR.Resource", `Name "a/b"`} {
		require.ErrorContains(t, err, field)
	}
	_, err = watch.NewSingle(watch.SingleConfig{GVR: ingresses}, fakeClient())
	require.ErrorContains(t, err, "Name: is missing")
	_, err = watch.NewDebouncer(watch.DebouncerConfig{Interval: -2})
	require.ErrorContains(t, err, "Interval")
	require.ErrorContains(t, err, "Callback: is missing")
	_, err = watch.NewStore(0)
	require.ErrorContains(t, err, `width "0"`)
}

func TestIgnoredFieldsBesideThoseThatAreRead(t *testing.T) {
	t.Parallel()
	_, err := watch.NewIndexer(watch.IndexerConfig{
		IndexBy:      []string{"spec.a[0].b", `status.conditions[?(@.type=="Ready")].status`},
		IgnoreFields: []string{"spec.a[1].b", "spec.a[0].c", "spec.a.b", "status.conditions[*].message", "metadata.managedFields", "metadata.annotations"},
	})
	require.NoError(t, err)
	_, err = watch.NewIndexer(watch.IndexerConfig{IndexBy: []string{`a[?(@.type=="x")].b`}, IgnoreFields: []string{"a"}})
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(err.Error(), "IgnoreFields[0]"), "one fault, although the path and its filter are read: %v", err)
}

func TestIgnoredFieldsInManyPlaces(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"spec.rules[*].path":                 `[{"host":"a"},{"host":"b"}]`,
		"spec.rules.*.path":                  `[{"host":"a"},{"host":"b"}]`,
		`spec.rules[?(@.host=="b")].path`:    `[{"host":"a","path":"/1"},{"host":"b"}]`,
		"spec.rules[-2].path":                `[{"host":"a"},{"host":"b","path":"/2"}]`,
		"spec['rules'][*]['path']":           `[{"host":"a"},{"host":"b"}]`,
		"spec.rules[*].path.deeper":          `[{"host":"a","path":"/1"},{"host":"b","path":"/2"}]`,
		`spec.rules[?(@.host=="none")].path`: `[{"host":"a","path":"/1"},{"host":"b","path":"/2"}]`,
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			indexer, err := watch.NewIndexer(watch.IndexerConfig{IndexBy: []string{"kind"}, IgnoreFields: []string{expression}})
			require.NoError(t, err)
			rules := []any{map[string]any{"host": "a", "path": "/1"}, map[string]any{"host": "b", "path": "/2"}}
			u := object("a", with(rules, "spec", "rules"))
			indexer.Prepare(u)
			left, err := json.Marshal(u.Object["spec"].(map[string]any)["rules"])
			require.NoError(t, err)
			assert.JSONEq(t, want, string(left))
		})
	}
}

// A filter compares what the API server has sent.
func TestOrderOfIgnoredFieldsDoesNotMatter(t *testing.T) {
	t.Parallel()
	for name, ignored := range map[string][2]string{
		"a field and a filter":         {"spec.rules[*].host", `spec.rules[?(@.host=="a")].path`},
		"filters that read each other": {`spec.rules[?(@.path)].host`, `spec.rules[?(@.host=="a")].path`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, fields := range [][]string{{ignored[0], ignored[1]}, {ignored[1], ignored[0]}} {
				indexer, err := watch.NewIndexer(watch.IndexerConfig{IndexBy: []string{"kind"}, IgnoreFields: fields})
				require.NoError(t, err)
				rules := []any{map[string]any{"host": "a", "path": "/1"}, map[string]any{"host": "b", "path": "/2"}}
				u := object("a", with(rules, "spec", "rules"))
				for range 2 {
					indexer.Prepare(u)
					left, err := json.Marshal(u.Object["spec"].(map[string]any)["rules"])
					require.NoError(t, err)
					assert.JSONEq(t, `[{},{"path":"/2"}]`, string(left), fields)
				}
			}
		})
	}
}

func TestPositionsCountCharacters(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*watch.Config)
		want   string
	}{
		"IndexBy":                 {func(c *watch.Config) { c.IndexBy = []string{"éé..b"} }, `IndexBy[0] "éé..b", character 4: recursive`},
		"IndexBy, of many bytes":  {func(c *watch.Config) { c.IndexBy = []string{"日本.a b"} }, `character 5: unexpected ' '`},
		"IgnoreFields":            {func(c *watch.Config) { c.IgnoreFields = []string{"é[0]"} }, `IgnoreFields[0] "é[0]", character 2: only fields`},
		"FieldSelector, a path":   {func(c *watch.Config) { c.FieldSelector = "é=ü,éé..b=c" }, `FieldSelector "é=ü,éé..b=c", character 8: recursive`},
		"FieldSelector, a value":  {func(c *watch.Config) { c.FieldSelector = "é=ü,é== ü=" }, `character 10: '='`},
		"FieldSelector, a blank":  {func(c *watch.Config) { c.FieldSelector = "é=ü,\u00a0é[x]=" }, `character 8: "x" is no index`},
		"FieldSelector, no term":  {func(c *watch.Config) { c.FieldSelector = "é=ü," }, `character 5: is no term`},
		"LabelSelector":           {func(c *watch.Config) { c.LabelSelector = "a in (é)" }, `LabelSelector "a in (é)", character 1:`},
		"LabelSelector, a second": {func(c *watch.Config) { c.LabelSelector = "a=b,é=é,=x" }, `LabelSelector "a=b,é=é,=x", character 5:`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := watch.Config{GVR: ingresses, IndexBy: byName}
			c.change(&config)
			_, err := watch.NewBulk(config, fakeClient())
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "n", "labels": map[string]any{"a.b/c": "dotted", "it's": "quoted"}},
		"spec": map[string]any{
			"n": int64(80), "f": 0.1, "big": 1e21, "t": true, "null": nil, "empty": "",
			"rules": []any{map[string]any{"host": "x"}, map[string]any{"host": "y", "tls": true}, map[string]any{"path": "/"}},
			"map":   map[string]any{"b": "2", "a": "1"},
		},
	}}
	cases := map[string]string{
		"metadata.name":                         "n",
		".metadata.name":                        "n",
		"$.metadata.name":                       "n",
		"$['metadata']['name']":                 "n",
		`metadata["name"]`:                      "n",
		"metadata.labels['a.b/c']":              "dotted",
		`metadata.labels.a\.b/c`:                "dotted",
		`metadata.labels['it\'s']`:              "quoted",
		"spec.n":                                "80",
		"spec.f":                                "0.1",
		"spec.big":                              "1000000000000000000000",
		"spec.t":                                "true",
		"spec.null":                             "",
		"spec.empty":                            "",
		"spec.missing.deeper":                   "",
		"spec.n.deeper":                         "",
		"spec.rules[0].host":                    "x",
		"spec.rules[-2].host":                   "y",
		"spec.rules[9].host":                    "",
		"spec.rules[-9].host":                   "",
		"spec.map[0]":                           "",
		"spec.rules[*].host":                    "x and y",
		"spec.map.*":                            "1 and 2",
		"spec.map":                              `{"a":"1","b":"2"}`,
		"spec.rules[?(@.tls)].host":             "y",
		"spec.rules[?(@.tls==true)].host":       "y",
		`spec.rules[?(@.host == "x")].host`:     "x",
		`spec.rules[?(@.host!='x')].host`:       "y",
		`spec.rules[?(@['host']=="y")].tls`:     "true",
		`spec.rules[?(@.host=="a)]b")].host`:    "",
		`spec.rules[?(@.host!="x")].path`:       "", // a missing field matches nothing
		`spec.rules[?(@.path=="/")]`:            `{"path":"/"}`,
		"spec.rules[*].missing":                 "",
		"metadata.labels":                       `{"a.b/c":"dotted","it's":"quoted"}`,
		`spec.rules[?(@.host=="x")]['host'].no`: "",
	}
	for expression, want := range cases {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			indexer, err := watch.NewIndexer(watch.IndexerConfig{IndexBy: []string{expression}})
			require.NoError(t, err)
			var got []string
			for _, key := range indexer.Keys(u) {
				require.Len(t, key, 1)
				got = append(got, key[0])
			}
			assert.Equal(t, want, strings.Join(got, " and "))
		})
	}
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	u := object("a", class("haproxy"), with([]any{"x", "y"}, "spec", "hosts"), with("a,b=c", "spec", "odd"), with(int64(80), "spec", "port"))
	cases := map[string]bool{
		"": true, "  ": true,
		"spec.ingressClassName=haproxy":                        true,
		"spec.ingressClassName==haproxy":                       true,
		"spec.ingressClassName!=haproxy":                       false,
		"spec.ingressClassName!=nginx":                         true,
		"spec.port=80":                                         true,
		"spec.missing=":                                        true,
		"spec.missing!=":                                       false,
		"spec.missing!=x":                                      true,
		"spec.hosts[*]=y":                                      true,
		"spec.hosts[*]!=y":                                     false,
		"spec.hosts[*]!=z":                                     true,
		`spec.odd=a\,b\=c`:                                     true,
		"metadata.name=a, spec.port=80":                        true,
		"metadata.name=a,spec.port=81":                         false,
		`spec['ingressClassName']=haproxy,metadata['name']!=b`: true,
		`spec.list[?(@.a=="b,c")].d=,metadata.name=a`:          true,
		"spec.odd!=[,metadata.name=a":                          true, // a bracket in a value is a character
		"spec.odd!=[,metadata.name=b":                          false,
	}
	for expression, want := range cases {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			selector, err := watch.NewSelector(expression)
			require.NoError(t, err)
			assert.Equal(t, want, selector.Matches(u))
		})
	}
}

func TestStoreAlone(t *testing.T) {
	t.Parallel()
	store, err := watch.NewStore(2)
	require.NoError(t, err)
	_, err = store.Put(object("a"), watch.Key{"only one"})
	require.ErrorContains(t, err, `the key ["only one"] has 1 parts, the index has 2`)
	old, err := store.Put(object("a"), watch.Key{"x", "1"})
	require.NoError(t, err)
	assert.Nil(t, old)
	old, err = store.Put(object("a", class("new")), watch.Key{"x", "1"})
	require.NoError(t, err)
	assert.Equal(t, object("a"), old)
	assert.Len(t, store.Get("x"), 1)
	assert.Empty(t, store.Get("x", "1", "more"))
	assert.Nil(t, store.DeleteObject("default", "b"))
	assert.Equal(t, object("a", class("new")), store.DeleteObject("default", "a"))
	assert.Empty(t, store.Get("x"))
}

func TestTheIndexDoesNotGrow(t *testing.T) {
	t.Parallel()
	store, err := watch.NewStore(2)
	require.NoError(t, err)
	for i := range 100 {
		_, err := store.Put(object("moves"), watch.Key{fmt.Sprint(i), "x"})
		require.NoError(t, err)
		_, err = store.Put(object("comes and goes"), watch.Key{"y", fmt.Sprint(i)})
		require.NoError(t, err)
		store.DeleteObject("default", "comes and goes")
	}
	assert.Equal(t, 3, store.Nodes(), "the root, and the two keys of the one object that is there")
}

func TestDebouncerAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		debouncer, err := watch.NewDebouncer(watch.DebouncerConfig{
			InitialSync: true,
			Callback: func(_ context.Context, stats watch.ChangeStats) error {
				calls.add("%s %t", stats, stats.IsInitialSync)
				return nil
			},
		})
		require.NoError(t, err)
		go debouncer.Run(t.Context())
		debouncer.Record(watch.ChangeStats{Created: 2})
		debouncer.Record(watch.ChangeStats{Created: 1, Deleted: 1, IsInitialSync: true})
		pass(time.Hour)
		assert.Empty(t, calls.read())
		debouncer.EndSync()
		debouncer.EndSync()
		pass(time.Millisecond)
		assert.Equal(t, []string{"+3 ~0 -1 false"}, calls.read())
		pass(time.Minute)
		debouncer.Record(watch.ChangeStats{Modified: 1})
		synctest.Wait()
		assert.Equal(t, []string{"+0 ~1 -0 false"}, calls.read())
		debouncer.Record(watch.ChangeStats{Deleted: 1})
		pass(4999 * time.Millisecond)
		assert.Empty(t, calls.read(), "the interval is 5 s where none is given")
		pass(time.Millisecond)
		assert.Equal(t, []string{"+0 ~0 -1 false"}, calls.read())
	})
}
