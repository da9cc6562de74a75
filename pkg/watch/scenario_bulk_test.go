package watch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func TestBulkWatcher(t *testing.T) {
	t.Parallel()
	// Mutation: limit does not set options.LabelSelector.
	scenario(t, "Watcher receives resources matching label selector", func(t bubble) {
		web, db := labelled(map[string]string{"app": "web"}), labelled(map[string]string{"app": "db"})
		s := newServer(t, object("a", web), object("b", db), object("c", web))
		bulk := startBulk(t, s, watch.Config{LabelSelector: "app in (web)"})
		count, err := bulk.WaitForSync(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, count)
		assert.Equal(t, []string{"a", "c"}, names(bulk.Store().List()))

		s.Update(object("b", web))
		s.Update(object("a", db))
		synctest.Wait()
		assert.Equal(t, []string{"b", "c"}, names(bulk.Store().List()), "an object follows its labels")
	})

	// Mutation: inspect does not make a deletion of what is not selected.
	scenario(t, "Client-side field selector filters resources", func(t bubble) {
		s := newServer(t, object("a", class("haproxy")), object("b", class("nginx")), object("c"))
		var calls journal
		bulk := startBulk(t, s, watch.Config{FieldSelector: "spec.ingressClassName=haproxy", OnChange: calls.onChange, OnObject: calls.onObject})
		assert.Equal(t, []string{"a"}, names(bulk.Store().List()))
		assert.Equal(t, []string{"none → a@1001", "change +1 ~0 -0 initial=false"}, calls.read())

		pass(time.Minute)
		s.Update(object("a", class("nginx")))
		synctest.Wait()
		assert.Empty(t, bulk.Store().List())
		assert.Equal(t, []string{"a@1001 → none", "change +0 ~0 -1 initial=false"}, calls.read(), "a transition is a deletion")

		pass(time.Minute)
		s.Delete(object("a", class("nginx")))
		s.Delete(object("c"))
		pass(time.Minute)
		assert.Empty(t, calls.read(), "what is no member cannot be deleted")
	})

	// Mutation: report counts an object that was not in the store as modified.
	scenario(t, "Field selector transition from non-matching to matching", func(t bubble) {
		s := newServer(t, object("a", class("nginx")))
		var calls journal
		bulk := startBulk(t, s, watch.Config{FieldSelector: "spec.ingressClassName=haproxy", OnChange: calls.onChange})
		assert.Equal(t, 0, bulk.Store().Len())
		s.Update(object("a", class("haproxy")))
		synctest.Wait()
		assert.Equal(t, []string{"a"}, names(bulk.Store().Get("default", "a")))
		assert.Equal(t, []string{"change +1 ~0 -0 initial=false"}, calls.read())
	})

	// Mutation: isResync always returns false.
	scenario(t, "Resync events are filtered", func(t bubble) {
		s := newServer(t, object("a"), object("b"))
		var calls journal
		bulk := startBulk(t, s, watch.Config{OnChange: calls.onChange, OnObject: calls.onObject})
		pass(time.Minute)
		calls.read()
		relist(s)
		pass(time.Minute)
		assert.Empty(t, calls.read(), "a relist delivers every object again, with the same version")
		s.Update(object("b"))
		pass(time.Minute)
		assert.Equal(t, []string{"b@1002 → b@1004", "change +0 ~1 -0 initial=false"}, calls.read())
		assert.Equal(t, 2, bulk.Store().Len())
	})
}

// relist makes informers list again.
func relist(s *apiServer) {
	s.Compact()
	s.Drop(nil)
	pass(time.Minute)
}
