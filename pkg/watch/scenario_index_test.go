package watch_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func TestIndexing(t *testing.T) {
	t.Parallel()
	// Mutation: Keys fills the keys in reverse order.
	scenario(t, "Composite key extraction", func(t bubble) {
		indexer, err := watch.NewIndexer(watch.IndexerConfig{IndexBy: []string{"metadata.namespace", "metadata.name"}})
		require.NoError(t, err)
		assert.Equal(t, []watch.Key{{"default", "my-ingress"}}, indexer.Process(object("default/my-ingress")))

		s := newServer(t, object("default/my-ingress"), object("default/other"), object("web/my-ingress"))
		bulk := startBulk(t, s, watch.Config{IndexBy: []string{"metadata.namespace", "metadata.name"}})
		assert.Len(t, bulk.Store().Get("default", "my-ingress"), 1)
		assert.Equal(t, []string{"my-ingress", "other"}, names(bulk.Store().Get("default")), "a prefix of the key finds all under it")
		assert.Empty(t, bulk.Store().Get("my-ingress"))
	})

	// Mutation: NewIndexer leaves out what does not parse.
	scenario(t, "Invalid JSONPath expression rejected at creation", func(t bubble) {
		for _, create := range []func(indexBy []string) error{
			func(indexBy []string) error {
				_, err := watch.NewIndexer(watch.IndexerConfig{IndexBy: indexBy})
				return err
			},
			func(indexBy []string) error {
				_, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: indexBy}, newServer(t).client(t))
				return err
			},
		} {
			var fault *watch.ConfigError
			require.ErrorAs(t, create([]string{"metadata.name", "metadata.labels[app"}), &fault)
			assert.Equal(t, "IndexBy[1]", fault.Field)
			assert.Equal(t, "metadata.labels[app", fault.Expression)
			assert.Equal(t, 16, fault.Position)
			assert.Equal(t, `IndexBy[1] "metadata.labels[app", character 16: the bracket is not closed`, fault.Error())
			require.ErrorAs(t, create(nil), &fault)
			assert.Equal(t, "IndexBy", fault.Field, "at least one is required")
		}
	})
}

func TestFieldFiltering(t *testing.T) {
	t.Parallel()
	managed := with([]any{map[string]any{"manager": "kubectl"}}, "metadata", "managedFields")
	// Mutation: Prepare does not remove.
	scenario(t, "ManagedFields removed before storage", func(t bubble) {
		s := newServer(t, object("a", managed))
		bulk := startBulk(t, s, watch.Config{IgnoreFields: []string{"metadata.managedFields"}})
		metadata := func() any { return bulk.Store().Object("default", "a").Object["metadata"] }
		assert.NotContains(t, metadata(), "managedFields")
		s.Update(object("a", managed))
		synctest.Wait()
		assert.NotContains(t, metadata(), "managedFields", "in updates as well")
		assert.Equal(t, "1002", bulk.Store().Object("default", "a").GetResourceVersion())
	})

	// Mutation: remove makes the missing parents on its way.
	scenario(t, "Missing ignore field is silently skipped", func(t bubble) {
		var book logBook
		s := newServer(t, object("a", class("haproxy")))
		bulk := startBulk(t, s, watch.Config{
			IgnoreFields: []string{"metadata.managedFields", "status.loadBalancer.ingress", "spec.ingressClassName.x", "spec.rules[3].host"},
			Logger:       book.logger(),
		})
		sent := object("a", class("haproxy"))
		sent.SetResourceVersion("1001")
		assert.Equal(t, sent, bulk.Store().Object("default", "a"))
		assert.Empty(t, book.lines(t, "ERROR", ""))
		assert.Empty(t, book.lines(t, "WARN", ""))
	})
}

func TestFloatToInt(t *testing.T) {
	t.Parallel()
	stored := func(t testing.TB, number string, indexBy ...string) (any, watch.Reader) {
		t.Helper()
		s := newServer(t, object("a", with([]any{map[string]any{"port": json.Number(number)}}, "spec", "ports")))
		bulk := startBulk(t, s, watch.Config{IndexBy: indexBy})
		ports, _, err := unstructured.NestedSlice(bulk.Store().Object("default", "a").Object, "spec", "ports")
		require.NoError(t, err)
		return ports[0].(map[string]any)["port"], bulk.Store()
	}
	// Mutation: wholeToInt does not descend into lists.
	scenario(t, "Integer port number converted", func(t bubble) {
		port, store := stored(t, "80.0", "spec.ports[0].port")
		assert.Equal(t, int64(80), port)
		assert.Len(t, store.Get("80"), 1)
	})

	// Mutation: wholeToInt truncates.
	scenario(t, "Fractional value preserved", func(t bubble) {
		port, store := stored(t, "3.14", "spec.ports[0].port")
		assert.InDelta(t, 3.14, port, 0)
		assert.Len(t, store.Get("3.14"), 1)
	})
}

func TestTombstones(t *testing.T) {
	t.Parallel()
	// Mutation: deleted does not unwrap the tombstone.
	scenario(t, "Tombstone delete event processed", func(t bubble) {
		s := newServer(t, object("a", class("haproxy")), object("b", class("haproxy")), object("c", class("nginx")))
		var calls journal
		bulk := startBulk(t, s, watch.Config{IndexBy: []string{"spec.ingressClassName"}, OnChange: calls.onChange, OnObject: calls.onObject})
		pass(time.Minute)
		calls.read()
		s.Fault(faults{refuse: true})
		s.Drop(nil)
		s.Delete(object("a"))
		s.Compact() // so that no delete event is ever sent
		s.Fault(faults{})
		pass(2 * time.Minute)
		assert.Equal(t, []string{"a@1001 → none", "change +0 ~0 -1 initial=false"}, calls.read())
		assert.Equal(t, []string{"b"}, names(bulk.Store().Get("haproxy")), "the other one under the key stays")
		assert.Equal(t, []string{"c"}, names(bulk.Store().Get("nginx")))
	})
}
