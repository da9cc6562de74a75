package watch_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// The tests of this file hold facts of client-go that bite.

func failure(code int32, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: "injected",
	}
}

func fakeClient(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{ingresses: "IngressList"}, objects...)
}

// hiding embeds the interface alone.
type hiding struct{ dynamic.Interface }

// forwarding passes the method on, as a wrapper must.
type forwarding struct{ *fake.FakeDynamicClient }

func TestAWrapperMustPassOnWhetherListsAreStreamed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		wrap  func(*fake.FakeDynamicClient) dynamic.Interface
		syncs bool
	}{
		"the fake itself says that it cannot": {func(c *fake.FakeDynamicClient) dynamic.Interface { return c }, true},
		"a wrapper that passes it on":         {func(c *fake.FakeDynamicClient) dynamic.Interface { return forwarding{c} }, true},
		"a wrapper that hides it":             {func(c *fake.FakeDynamicClient) dynamic.Interface { return hiding{c} }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName}, c.wrap(fakeClient(object("a"))))
				require.NoError(t, err)
				start(t, bulk)
				pass(time.Minute)
				assert.Equal(t, c.syncs, bulk.IsSynced())
			})
		})
	}
}

func TestAServerThatDoesNotStreamLists(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		s := newServer(t, object("a"))
		s.Fault(faults{noStreamList: true})
		bulk := startBulk(t, s, watch.Config{Logger: book.logger()})
		assert.True(t, bulk.IsSynced(), "it is listed instead")
		at, err := bulk.LastWatchError()
		require.NoError(t, err, "that is no error")
		assert.Zero(t, at)
		assert.Empty(t, book.lines(t, "WARN", ""))
		s.Create(object("b"))
		synctest.Wait()
		assert.Equal(t, 2, bulk.Store().Len())
	})
}

func TestDeletedAndCreatedAnewBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var many, one journal
		s := newServer(t, object("a", generation(1), uid("first")))
		bulk := startBulk(t, s, watch.Config{OnChange: many.onChange, OnObject: many.onObject})
		startSingle(t, s, one.single("a"))
		pass(time.Minute)
		many.read()
		one.read()
		s.Fault(faults{refuse: true})
		s.Drop(nil)
		s.Delete(object("a"))
		s.Create(object("a", generation(1), uid("second")))
		s.Compact()
		s.Fault(faults{})
		pass(2 * time.Minute)
		assert.ElementsMatch(t, []string{"a@1001 → none", "none → a@1003", "change +1 ~0 -1 initial=false"}, many.read(), "one change, at once")
		assert.Equal(t, []string{"change a@1003"}, one.read(), "although the generation is the same")
		assert.Equal(t, 1, bulk.Store().Len())
	})
}

// The server would accept a watch at the later version, and send nothing of what was written since the restore. Where it has reached that
// version again, it would send what comes then, and nothing of what was deleted or written before.
func TestRestoredServerIsListedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		away faults
		last string
		// at is the version before the first object that is written after the restore; the last one that was watched is 1003.
		at int
	}{
		"the server refuses connections":                    {faults{refuse: true}, "connection refused", 500},
		"the server has reached the version again":          {faults{refuse: true}, "connection refused", 5000},
		"the server is silent":                              {faults{mute: true}, "sent nothing of the initial list", 500},
		"the server is silent, and the transport ends that": {faults{mute: true, muteFor: 2 * time.Minute}, "within the initial list", 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var many, one journal
				s := newServer(t, object("a", generation(5)), object("b"))
				bulk := startBulk(t, s, watch.Config{OnObject: many.onObject})
				startSingle(t, s, one.single("a"))
				s.Create(object("c"))
				pass(time.Minute)
				many.read()
				one.read()
				s.Fault(tc.away)
				s.Drop(nil)
				s.Restore(tc.at, object("a", class("x"), generation(5)), object("d"))
				pass(10 * time.Minute)
				s.Fault(faults{})
				pass(2 * time.Minute)
				a, d := fmt.Sprint("a@", tc.at+1), fmt.Sprint("d@", tc.at+2)
				assert.ElementsMatch(t, []string{"a@1001 → " + a, "none → " + d, "b@1002 → none", "c@1003 → none"}, many.read())
				assert.Equal(t, []string{"change " + a}, one.read())
				_, err := bulk.LastWatchError()
				assert.ErrorContains(t, err, tc.last)
			})
		})
	}
}

// A server that has just started may be too busy to show what it has. Once it has reached the version again, nothing shows the restore.
func TestRestoredServerThatIsBusyIsListedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"), object("b"))
		bulk := startBulk(t, s, watch.Config{})
		pass(time.Minute)
		s.Fault(faults{mute: true, muteFor: 2 * time.Minute})
		s.Drop(nil)
		pass(time.Minute)
		s.Restore(500, object("a"), object("d"))
		s.Fault(faults{listStatus: http.StatusTooManyRequests})
		pass(90 * time.Second)
		s.Fault(faults{})
		pass(time.Minute)
		for range 600 {
			s.Update(object("a"))
		}
		pass(time.Minute)
		assert.Equal(t, []string{"a", "d"}, names(bulk.Store().List()))
	})
}

func TestFieldSelectorAndTombstones(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t, object("in", class("x")), object("out", class("y")), object("comes", class("y")), object("goes", class("x")))
		bulk := startBulk(t, s, watch.Config{FieldSelector: "spec.ingressClassName!=y", OnObject: calls.onObject})
		pass(time.Minute)
		calls.read()
		s.Fault(faults{refuse: true})
		s.Drop(nil)
		s.Delete(object("in", class("x")))
		s.Delete(object("out", class("y")))
		s.Update(object("comes", class("x")))
		s.Update(object("goes", class("y")))
		s.Compact()
		s.Fault(faults{})
		pass(2 * time.Minute)
		assert.ElementsMatch(t, []string{"in@1001 → none", "none → comes@1007", "goes@1004 → none"}, calls.read())
		assert.Equal(t, []string{"comes"}, names(bulk.Store().List()))
	})
}

func TestSingleChecksTheNameAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		client := fakeClient(object("a"), object("b")) // ignores field selectors
		single, err := watch.NewSingle(calls.single("a"), client)
		require.NoError(t, err)
		start(t, single)
		assert.Equal(t, []string{"synced a@"}, calls.read())
		write := client.Resource(ingresses).Namespace("default")
		other := object("b", class("x"))
		other.SetResourceVersion("7")
		_, err = write.Update(t.Context(), other, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, write.Delete(t.Context(), "b", metav1.DeleteOptions{}))
		own := object("a", class("x"))
		own.SetResourceVersion("8")
		_, err = write.Update(t.Context(), own, metav1.UpdateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []string{"change a@8"}, calls.read())
	})
}

func TestSingleIgnoresOtherObjects(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		client := fakeClient(object("a"), object("b"), object("web/a")) // ignores field selectors
		config := calls.single("a")
		config.OnSyncComplete = nil // nothing was shown yet: every event would call back
		single, err := watch.NewSingle(config, client)
		require.NoError(t, err)
		start(t, single)
		assert.Equal(t, []string{"default/a"}, single.Kept(), "they are not kept either")
		other, write := object("b", class("x")), client.Resource(ingresses).Namespace("default")
		other.SetResourceVersion("7")
		_, err = write.Update(t.Context(), other, metav1.UpdateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		assert.Empty(t, calls.read(), "an update of another name")
		require.NoError(t, write.Delete(t.Context(), "b", metav1.DeleteOptions{}))
		synctest.Wait()
		assert.Empty(t, calls.read(), "a deletion of another name")
		_, err = write.Create(t.Context(), object("c"), metav1.CreateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		assert.Empty(t, calls.read(), "another name that is new")
		require.NoError(t, write.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()
		assert.Equal(t, []string{"change none"}, calls.read(), "its own")
	})
}

func TestATombstoneMayHaveAKeyAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var many, one journal
		s := newServer(t, object("a"), object("b"))
		bulk := startBulk(t, s, watch.Config{OnObject: many.onObject})
		config := one.single("a")
		config.OnSyncComplete = nil
		single := startSingle(t, s, config)
		many.read()
		for _, key := range []string{"default/none", "default/b", "web/a", "default/a"} {
			tombstone := cache.DeletedFinalStateUnknown{Key: key}
			bulk.Handler(t.Context()).OnDelete(tombstone)
			single.Handler(t.Context()).OnDelete(tombstone)
			synctest.Wait()
			assert.Equal(t, key == "default/a", len(one.read()) == 1, key)
		}
		assert.Equal(t, []string{"b@1002 → none", "a@1001 → none"}, many.read())
		assert.Zero(t, bulk.Store().Len())
	})
}

func TestUpdateOfNoObjectIsIgnored(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var one journal
		s := newServer(t, object("a"))
		config := one.single("a")
		config.OnSyncComplete = nil
		handler := startSingle(t, s, config).Handler(t.Context())
		handler.OnUpdate(nil, object("a"))
		handler.OnUpdate(object("a"), nil)
		handler.OnUpdate(nil, nil)
		synctest.Wait()
		assert.Empty(t, one.read())
	})
}

func TestBulkWorksWithAFake(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		client := fakeClient(object("a"))
		bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName}, client)
		require.NoError(t, err)
		start(t, bulk)
		count, err := bulk.WaitForSync(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, count)
		update := func(version string) string {
			u := object("a", class(version))
			u.SetResourceVersion(version)
			_, err := client.Resource(ingresses).Namespace("default").Update(t.Context(), u, metav1.UpdateOptions{})
			require.NoError(t, err)
			synctest.Wait()
			return bulk.Store().Object("default", "a").GetResourceVersion()
		}
		assert.Equal(t, "2", update("2"))
		assert.Equal(t, "3", update("3"), "versions are the test's affair")
	})
}

func TestStateDeliveredAtSyncIsNotDeliveredAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		// The cache may be ahead of the events; then OnSyncComplete has shown
		// already the object of the event.
		var calls journal
		s := newServer(t, object("a"))
		config := calls.single("a")
		block := make(chan struct{})
		onSync := config.OnSyncComplete
		config.OnSyncComplete = func(ctx context.Context, u *unstructured.Unstructured) error {
			<-block
			return onSync(ctx, u)
		}
		startSingle(t, s, config)
		s.Delete(object("a"))
		s.Create(object("a"))
		s.Delete(object("a"))
		synctest.Wait()
		close(block)
		synctest.Wait()
		assert.Equal(t, []string{"synced a@1001", "change none"}, calls.read())
	})
}
