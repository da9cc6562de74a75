package watch_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func hosts(names ...string) func(*unstructured.Unstructured) {
	rules := []any{}
	for _, name := range names {
		rules = append(rules, map[string]any{"host": name})
	}
	return with(rules, "spec", "rules")
}

func TestEachValueIsAKey(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a", hosts("x", "y", "x")), object("b", hosts("y")), object("c"))
		bulk := startBulk(t, s, watch.Config{IndexBy: []string{"metadata.namespace", "spec.rules[*].host"}})
		store := bulk.Store()
		at := func(host string) []string { return names(store.Get("default", host)) }
		assert.Equal(t, []string{"a"}, at("x"))
		assert.Equal(t, []string{"a", "b"}, at("y"))
		assert.Equal(t, []string{"c"}, at(""), "without any value")
		assert.Equal(t, []string{"a", "b", "c"}, names(store.Get("default")), "each once")
		assert.Equal(t, []string{"a", "b", "c"}, names(store.List()))
		s.Update(object("a", hosts("z", "y")))
		synctest.Wait()
		assert.Empty(t, at("x"))
		assert.Equal(t, []string{"a", "b"}, at("y"))
		assert.Equal(t, []string{"a"}, at("z"))
		s.Delete(object("a"))
		synctest.Wait()
		assert.Empty(t, at("z"))
		assert.Equal(t, []string{"b"}, at("y"))
		assert.Equal(t, 2, store.Len())
	})
}

func TestKeysAreEveryCombination(t *testing.T) {
	t.Parallel()
	indexer, err := watch.NewIndexer(watch.IndexerConfig{IndexBy: []string{"spec.rules[*].host", "metadata.name", "spec.tls[*]"}})
	require.NoError(t, err)
	keys := indexer.Keys(object("a", hosts("x", "y", "x"), with([]any{"1", "2"}, "spec", "tls")))
	assert.Equal(t, []watch.Key{{"x", "a", "1"}, {"x", "a", "2"}, {"y", "a", "1"}, {"y", "a", "2"}}, keys)
}

func TestTooManyKeysAreNone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		many := make([]string, 101)
		for i := range many {
			many[i] = strings.Repeat("x", i+1)
		}
		var book logBook
		s := newServer(t, object("most", hosts(many[:10]...), with(anySlice(many[:100]), "spec", "tls")),
			object("more", hosts(many[:11]...), with(anySlice(many[:91]), "spec", "tls")))
		bulk := startBulk(t, s, watch.Config{IndexBy: []string{"spec.rules[*].host", "spec.tls[*]"}, Logger: book.logger()})
		assert.Equal(t, []string{"most"}, names(bulk.Store().Get("x", "x")))
		assert.Equal(t, []string{"more", "most"}, names(bulk.Store().List()))
		assert.NotNil(t, bulk.Store().Object("default", "more"))
		lines := book.lines(t, "ERROR", "object not indexed")
		require.Len(t, lines, 1)
		assert.Equal(t, "more", lines[0]["name"])
		s.Delete(object("more"))
		s.Delete(object("most"))
		synctest.Wait()
		assert.Zero(t, bulk.Store().Len())
	})
}

func anySlice(values []string) []any {
	all := make([]any, 0, len(values))
	for _, value := range values {
		all = append(all, value)
	}
	return all
}

func TestSameKeyTwiceIsOne(t *testing.T) {
	t.Parallel()
	store, err := watch.NewStore(1)
	require.NoError(t, err)
	_, err = store.Put(object("a"), watch.Key{"x"}, watch.Key{"x"})
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, names(store.Get("x")))
	assert.NotNil(t, store.DeleteObject("default", "a"))
	assert.Empty(t, store.Get("x"))
	assert.Equal(t, 1, store.Nodes())
}

func TestKeyMayBeUsedAgain(t *testing.T) {
	t.Parallel()
	store, err := watch.NewStore(1)
	require.NoError(t, err)
	key := watch.Key{"x"}
	put := func(name, part string) {
		key[0] = part
		_, err := store.Put(object(name), key)
		require.NoError(t, err)
	}
	put("a", "x")
	put("b", "y")
	put("a", "z")
	assert.Empty(t, store.Get("x"))
	assert.Equal(t, []string{"b"}, names(store.Get("y")))
	assert.Equal(t, []string{"a"}, names(store.Get("z")))
	key[0] = "other"
	assert.NotNil(t, store.DeleteObject("default", "a"))
	assert.NotNil(t, store.DeleteObject("default", "b"))
	assert.Equal(t, 1, store.Nodes(), "no key is left")
}
