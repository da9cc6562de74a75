package chain_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestObjectOutsideGraphIsNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.take()
		before := w.readCount()
		w.set(reference.Ref{Kind: reference.Secret, Name: "other"}, "1")
		w.set(tls, "1")
		w.pass(time.Minute)
		assert.Equal(t, before+1, w.readCount(), "the one that belongs to it, once")
		assert.Empty(t, w.take(), "an equal content is no change")
	})
}

func TestForbiddenResourceIsHeldUntilAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		allow := w.refuse(services, apierrors.NewForbidden(services.GroupResource(), "", errors.New("no permission")))
		w.graph()
		assert.Contains(t, w.hold(), "is forbidden")
		allow()
		w.pass(2 * time.Minute)
		assert.Empty(t, w.hold())
	})
}

// What is unread may be known any moment, so that a reload waits for it; what may not be read can stay so.
func TestUnreadObjectIsHeldAsUnread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		unread := func() bool {
			hold := w.State("ns", proxy).Hold
			require.NotNil(t, hold)
			return hold.NotReadYet
		}
		assert.True(t, unread(), "the configuration")
		w.Reject()
		assert.False(t, unread(), "there is nothing to wait for")
		away := w.refuse(services, errors.New("no answer"))
		w.graph()
		assert.Equal(t, "kafkaservices.kroxylicious.io/s is unsynced: the resource kafkaservices.kroxylicious.io cannot be read: no answer", w.hold())
		assert.True(t, unread(), "objects below it")
		away()
		w.pass(2 * time.Minute)
		require.Empty(t, w.hold())

		w = newWorld(t)
		w.refuse(services, apierrors.NewForbidden(services.GroupResource(), "", errors.New("no permission")))
		w.graph()
		assert.Contains(t, w.hold(), "is forbidden")
		assert.False(t, unread(), "the read was refused, not left out")
	})
}

func TestAFailedReadIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.failing = errors.New("no answer")
		w.graph()
		assert.Equal(t, "secret/tls is unsynced: it cannot be read: no answer", w.hold())
		w.mu.Lock()
		w.failing = apierrors.NewForbidden(services.GroupResource(), "", errors.New("no permission"))
		w.mu.Unlock()
		w.pass(11 * time.Second)
		assert.Equal(t, "secret/tls is forbidden: it may not be read", w.hold())
		w.mu.Lock()
		w.failing = nil
		w.mu.Unlock()
		w.pass(11 * time.Second)
		assert.Empty(t, w.hold())
		assert.LessOrEqual(t, w.readCount(), 4, "no hot loop")
	})
}

// Each event of an object that may not be read, and each question about it, reads it again at once.
func TestFailedReadsOfAnObjectAreRepeatedAsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.fail(apierrors.NewForbidden(services.GroupResource(), "tls", nil))
		for n := range 5 {
			w.set(tls, fmt.Sprint("edit ", n))
			w.pass(time.Second)
			w.ask()
		}
		require.Contains(t, w.hold(), "it may not be read")
		w.pass(10 * time.Second)
		before := w.readCount()
		w.pass(time.Hour)
		assert.InDelta(t, 60, w.readCount()-before, 3, "every minute")
		w.fail(nil)
		w.pass(time.Minute)
		assert.Empty(t, w.hold(), "it does not give up")
	})
}

// An API server that has just started refuses all requests for a moment. How long it was away before must not delay the next read.
func TestReadThatIsRefusedIsRepeatedSoonAtFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.fail(errors.New("no answer"))
		w.set(tls, "2")
		before := w.readCount()
		w.pass(time.Hour)
		assert.InDelta(t, 360, w.readCount()-before, 5, "every 10 seconds: an outage ends for all objects at once")
		refused := apierrors.NewForbidden(services.GroupResource(), "tls", nil)
		w.fail(refused)
		before = w.readCount()
		w.pass(2 * time.Minute)
		assert.InDelta(t, 5, w.readCount()-before, 1, "after 10 s, 10 s, 20 s and 40 s")
		w.fail(errors.New("no answer"))
		w.pass(time.Minute)
		w.fail(refused)
		w.pass(11 * time.Second)
		assert.Contains(t, w.hold(), "it may not be read")
		w.fail(nil)
		w.pass(11 * time.Second)
		assert.Empty(t, w.hold())
	})
}

// A restart for another reason asks for what was refused, and waits for the answer.
func TestReadThatIsRefusedIsRepeatedWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.fail(apierrors.NewForbidden(services.GroupResource(), "tls", nil))
		w.set(tls, "2")
		w.pass(time.Hour)
		w.fail(nil)
		w.Retry("ns", []reference.Ref{proxy})
		w.pass(time.Second)
		assert.Empty(t, w.hold())
	})
}

// A tenant can name one Secret after the other.
func TestAFailedReadIsNotRepeatedWhenNothingRefersToTheObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fail(errors.New("no answer"))
		w.graph()
		for n := range 20 {
			w.put(services, "s", map[string]any{"secret": fmt.Sprint("secret-", n)})
			w.pass(time.Second)
		}
		w.pass(30 * time.Second)
		before := w.readCount()
		w.pass(time.Minute)
		assert.InDelta(t, 6, w.readCount()-before, 1, "the last one, every 10 seconds")
		w.put(services, "s", map[string]any{})
		w.pass(30 * time.Second)
		before = w.readCount()
		w.pass(time.Minute)
		assert.Equal(t, before, w.readCount())
	})
}

// The reads of one namespace hang: another configuration is in force all the same.
func TestAReadThatHangsDelaysNoConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		hang := func(yes bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.hanging = yes
		}
		hang(true)
		w.set(tls, "2")
		w.pass(time.Second)
		w.Configure(proxyToSecret()[:1])
		w.pass(time.Second)
		require.Error(t, w.Check(proxy.Kind), "the proxies are gone from the configuration")
		assert.Contains(t, w.hold(), "have no resource")
		hang(false)
		w.Configure(proxyToSecret())
		w.pass(time.Second)
		assert.Empty(t, w.hold(), "what was given up is read at once")
	})
}

// A proxy, and an API server that does not serve the version any more, answer 404 without a word about the object. An optional object
// is not absent because of that.
func TestOnlyTheAPIServerSaysThatAnObjectIsAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(services, "s", map[string]any{})
		w.put(proxies, "p", map[string]any{"service": "s"})
		definitions := proxyToSecret()
		definitions[1].Refs[0].Optional = true
		w.Configure(definitions)
		w.pass(time.Second)
		before := w.entry()
		live := func() digest.Entry {
			states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
			require.NoError(t, err)
			newest, _ := w.currentRing().Newest()
			return states[proxy].Entries[newest.ID]
		}
		answer := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", services.GroupResource(), "s", "404 page not found", 0, true)
		w.client.PrependReactor("get", services.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return answer != nil, nil, answer
		})
		assert.Equal(t, before, live(), "the graph answers")

		answer = apierrors.NewNotFound(services.GroupResource(), "s")
		assert.NotEqual(t, before, live(), "it is absent, and no event has come yet")
	})
}

// With --namespaces, neither ConfigMaps and Secrets nor custom resources of other namespaces are known.
func TestAnotherNamespaceIsNotWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "ns")
		definitions := proxyToSecret()
		definitions[1].Refs[0] = referent.EdgeDefinition{
			Resource: "services", Name: "spec.at.name", Namespace: "spec.at.namespace", Namespaces: []string{"elsewhere"},
		}
		w.put(proxies, "p", map[string]any{"at": map[string]any{"name": "s", "namespace": "elsewhere"}})
		w.Configure(definitions)
		w.pass(time.Second)
		assert.Equal(t, "kafkaservices.kroxylicious.io/s in namespace elsewhere is forbidden: the namespace is not watched", w.hold())
		states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		require.NotNil(t, states[proxy].Hold)
		assert.Contains(t, states[proxy].Hold.Reason, "the namespace is not watched", "at admission, too")
	})
}

func TestReferredNamesWhatCustomResourcesReferTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "ns")
		assert.Empty(t, w.Referred(), "there is no graph")
		definitions := proxyToSecret()
		definitions[0].Refs[0] = referent.EdgeDefinition{
			Resource: "secrets", Name: "spec.secret", Namespace: "spec.in", Namespaces: []string{"elsewhere"},
		}
		w.put(services, "s", map[string]any{"secret": "tls"})
		w.put(services, "t", map[string]any{"secret": "missing"})
		w.put(services, "u", map[string]any{"secret": "far", "in": "elsewhere"})
		w.put(proxies, "p", map[string]any{"service": "s"})
		w.Configure(definitions)
		w.pass(time.Second)
		want := map[string][]reference.Ref{
			"ns": {{Kind: reference.Secret, Name: "missing"}, tls, {Kind: "kafkaservices.kroxylicious.io", Name: "s"}},
		}
		assert.Equal(t, want, w.Referred(), "a namespace that is not watched is left out")
		assert.Equal(t, want, chain.Store{Chain: w.Chain}.Referred())
	})
}
