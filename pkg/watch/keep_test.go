package watch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func TestUnmatchedObjectsAreNotKept(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]faults{"listed": {noStreamList: true}, "streamed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var calls journal
				s := newServer(t, object("in", class("x")), object("out", class("y")), object("goes", class("x")), object("comes", class("y")))
				s.Fault(server)
				bulk := startBulk(t, s, watch.Config{FieldSelector: "spec.ingressClassName=x", OnObject: calls.onObject})
				assert.ElementsMatch(t, []string{"default/in", "default/goes"}, bulk.Kept(), "of the initial list")
				assert.ElementsMatch(t, []string{"none → in@1001", "none → goes@1003"}, calls.read())
				s.Create(object("new", class("y")))
				s.Update(object("out", class("z")))
				s.Update(object("goes", class("y")))
				s.Update(object("comes", class("x")))
				s.Delete(object("out", class("z")))
				synctest.Wait()
				assert.ElementsMatch(t, []string{"default/in", "default/comes"}, bulk.Kept(), "of the events")
				assert.Equal(t, []string{"goes@1003 → none", "none → comes@1008"}, calls.read())
				assert.Equal(t, []string{"comes", "in"}, names(bulk.Store().List()))
				relist(s)
				assert.ElementsMatch(t, []string{"default/in", "default/comes"}, bulk.Kept(), "of a second list")
				assert.Empty(t, calls.read())
			})
		})
	}
}

// A relist brings new copies of all objects: if the store kept the old ones, the
// objects would take twice the memory.
func TestStoreSharesObjectsWithCacheAfterRelist(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]faults{"listed": {noStreamList: true}, "streamed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var calls journal
				s := newServer(t, object("a", class("x")), object("b", class("x")))
				s.Fault(server)
				bulk := startBulk(t, s, watch.Config{
					IndexBy: []string{"spec.ingressClassName"}, OnObject: calls.onObject, OnChange: calls.onChange,
				})
				pass(time.Minute)
				calls.read()
				store := bulk.Store()
				first := store.Object("default", "a")
				assert.Same(t, bulk.Cached("default", "a"), first)
				s.Convert(object("b", class("y")))
				relist(s)
				assert.NotSame(t, first, store.Object("default", "a"), "the relist has brought another copy")
				for _, name := range []string{"a", "b"} {
					assert.Same(t, bulk.Cached("default", name), store.Object("default", name), name)
				}
				assert.Equal(t, []string{"a"}, names(store.Get("x")))
				assert.Equal(t, []string{"b"}, names(store.Get("y")), "another representation of the same version")
				assert.Empty(t, calls.read(), "nothing has changed")
			})
		})
	}
}

func TestResyncReplacesOnlyItsOwnVersionInTheStore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{})
		stored := bulk.Store().Object("default", "a")
		resync := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
			now := stored.DeepCopy()
			change(now)
			bulk.Handler(t.Context()).OnUpdate(now.DeepCopy(), now)
			return now
		}
		resync(uid("another"))
		resync(func(u *unstructured.Unstructured) { u.SetResourceVersion("1") })
		resync(func(u *unstructured.Unstructured) { u.SetName("absent") })
		assert.Equal(t, []*unstructured.Unstructured{stored}, bulk.Store().List())
		assert.Same(t, stored, bulk.Store().Object("default", "a"))
		now := resync(func(*unstructured.Unstructured) {})
		assert.Same(t, now, bulk.Store().Object("default", "a"))
	})
}

// A stream goes on behind the last event, also behind one that nothing is kept
// of: else the server would send it again and again.
func TestUnmatchedEventsAdvanceTheWatch(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a", class("x")))
		startBulk(t, s, watch.Config{FieldSelector: "spec.ingressClassName=x"})
		s.Create(object("b", class("y")))
		s.Update(object("b", class("y")))
		s.Create(object("c", class("y")))
		pass(time.Minute)
		s.Drop(nil)
		pass(time.Minute)
		requests := s.Requests()
		assert.Equal(t, "1004", requests[len(requests)-1].Get("resourceVersion"))
	})
}

func TestServerSelectsByFieldsThatItSupports(t *testing.T) {
	t.Parallel()
	kind := func(value string) func(*unstructured.Unstructured) { return with(value, "type") }
	cases := map[string]struct {
		selector string
		requests []string // their field selectors, without repetitions
		want     []string
	}{
		"name and namespace":              {"metadata.name=a,metadata.namespace!=web", []string{"metadata.name=a,metadata.namespace!=web"}, []string{"a"}},
		"in brackets":                     {"metadata['name']=a", []string{"metadata.name=a"}, []string{"a", "a"}},
		"a supported field":               {"type=tls", []string{"type=tls"}, []string{"b"}},
		"one that is not":                 {"metadata.name!=b,spec.ingressClassName=x", []string{"metadata.name!=b,spec.ingressClassName=x", "metadata.name!=b"}, []string{"a"}},
		"what may have a default there":   {"type!=tls,type=", []string{""}, []string{"a", "a"}},
		"labels are no fields":            {"metadata.labels.app=web,type=tls", []string{"type=tls"}, []string{"b"}},
		"odd names are no fields":         {"spec['a.b']=odd,spec.list[*]=1", []string{""}, []string{"c"}},
		"dashes and underscores":          {"spec.odd-name_1=odd", []string{"spec.odd-name_1=odd", ""}, []string{"c"}},
		"items of a list":                 {"spec.list[*]=1", []string{""}, []string{"c"}},
		"no items":                        {"spec.list[*]=", []string{""}, []string{"a", "b", "a"}},
		"a value with special characters": {`metadata.name!=a\,b\=c,type=tls`, []string{`metadata.name!=a\,b\=c,type=tls`}, []string{"b"}},
	}
	for name, c := range cases {
		for how, server := range map[string]faults{"listed": {noStreamList: true}, "streamed": {}} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t bubble) {
					s := newServer(t, object("a", class("x")), object("b", kind("tls"), labelled(map[string]string{"app": "web"})), object("web/a", class("y")),
						object("c", class("y"), kind("odd"), with("odd", "spec", "a.b"), with("odd", "spec", "odd-name_1"), with([]any{"1"}, "spec", "list")))
					s.Fault(server)
					bulk := startBulk(t, s, watch.Config{FieldSelector: c.selector})
					pass(time.Minute)
					s.Drop(nil)
					pass(time.Minute)
					assert.Equal(t, c.want, names(bulk.Store().List()))
					var sent []string
					for _, request := range s.Requests() {
						if selector := request.Get("fieldSelector"); len(sent) == 0 || sent[len(sent)-1] != selector {
							sent = append(sent, selector)
						}
					}
					assert.Equal(t, c.requests, sent)
					_, err := bulk.LastWatchError()
					assert.NoError(t, err)
				})
			})
		}
	}
}

// plain is a client that does not stream lists.
type plain struct{ dynamic.Interface }

func (plain) IsWatchListSemanticsUnSupported() bool { return true }

func TestRejectedFieldCostsOneRequest(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(dynamic.Interface) dynamic.Interface{
		"of a list":   func(client dynamic.Interface) dynamic.Interface { return plain{client} },
		"of a stream": func(client dynamic.Interface) dynamic.Interface { return client },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var book logBook
				s := newServer(t, object("a", class("x")))
				bulk, err := watch.NewBulk(watch.Config{
					GVR: ingresses, IndexBy: byName, FieldSelector: "spec.ingressClassName=x", Logger: book.logger(),
				}, wrap(s.client(t)))
				require.NoError(t, err)
				start(t, bulk)
				assert.True(t, bulk.IsSynced(), "it was listed without the rejected field")
				requests := s.Requests()
				require.GreaterOrEqual(t, len(requests), 2)
				assert.Equal(t, "spec.ingressClassName=x", requests[0].Get("fieldSelector"))
				assert.Empty(t, requests[1].Get("fieldSelector"))
				for _, option := range []string{"watch", "sendInitialEvents", "resourceVersion"} {
					assert.Equal(t, requests[0].Get(option), requests[1].Get(option), "the same request again")
				}
				assert.Empty(t, book.lines(t, "WARN", ""))
				assert.Len(t, book.lines(t, "DEBUG+3", "does not select"), 1)
			})
		})
	}
}

// Nodes and Namespaces reject a selector with the namespace: what it selects is decided here.
func TestNamespaceThatTheServerRejectsAsAField(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a", class("x")), object("web/a", class("x")))
		s.Fault(faults{noNamespaceField: true})
		bulk := startBulk(t, s, watch.Config{FieldSelector: "metadata.namespace!=web,metadata.name=a"})
		assert.Equal(t, []string{"a"}, names(bulk.Store().List()))
		requests := s.Requests()
		assert.Equal(t, "metadata.name=a", requests[len(requests)-1].Get("fieldSelector"))
		_, err := bulk.LastWatchError()
		assert.NoError(t, err)
	})
}

func TestServerMaySelectTooMuch(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName, FieldSelector: "metadata.name=a"},
			fakeClient(object("a"), object("b"))) // ignores field selectors
		require.NoError(t, err)
		start(t, bulk)
		assert.Equal(t, []string{"default/a"}, bulk.Kept())
	})
}
