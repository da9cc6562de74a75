package chain_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// ignoring is a world with referrers, and what it has reported of them.
type ignoring struct {
	*world
	all []string
}

func newIgnoring(t *testing.T) *ignoring {
	t.Helper()
	w := &ignoring{world: newWorld(t)}
	w.OnIgnored(func(object *unstructured.Unstructured, problems string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = append(w.all, fmt.Sprintf("%s %s/%s %s: %s", object.GetKind(), object.GetNamespace(), object.GetName(), object.GetUID(), problems))
	})
	w.put(services, "s", map[string]any{})
	w.Configure(referrers())
	w.pass(time.Second)
	return w
}

// refer has a proxy refer to services.
func (w *ignoring) refer(name string, services ...any) {
	w.Helper()
	w.put(proxies, name, map[string]any{"services": services})
	synctest.Wait() // the client buffers some events only
}

// reports returns what was reported since it was called before.
func (w *ignoring) reports() []string {
	w.pass(time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

func TestReferencesThatAreIgnoredAreReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newIgnoring(t)
		w.refer("p", "s", "Bad Name")
		require.Empty(t, w.reports(), "it does not lead")
		ctx, stop := context.WithCancel(t.Context())
		go func() { assert.NoError(t, w.Lead(ctx)) }()
		bad := `Any ns/p uid-1: referents[0].referrers[0]: "Bad Name" names no object`
		require.Equal(t, []string{bad}, w.reports())
		w.refer("p", "Bad Name", "s")
		require.Empty(t, w.reports(), "nothing is new")
		w.refer("p", "Bad Name", "A")
		require.Equal(t, []string{bad + `; referents[0].referrers[0]: "A" names no object`}, w.reports())
		w.refer("p", "s")
		w.refer("p", "Bad Name")
		require.Empty(t, w.reports(), "there is an Event of it")
		w.pass(time.Hour)
		w.refer("p", "Bad Name", "s")
		require.Equal(t, []string{bad}, w.reports(), "the API server has forgotten that")

		stop()
		w.pass(time.Second)
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		require.Equal(t, []string{bad}, w.reports(), "by each leader")
	})
}

// The object is held for the same reason before and after.
func TestReferenceOfAHeldObjectThatIsIgnoredIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newIgnoring(t)
		held := referrers()
		held[1].Refs = []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secret"}}
		w.Configure(held)
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.put(proxies, "p", map[string]any{"secret": "absent", "services": []any{"s"}})
		require.Empty(t, w.reports())
		w.put(proxies, "p", map[string]any{"secret": "absent", "services": []any{"Bad Name"}})
		require.Len(t, w.reports(), 1)
	})
}

// The watch of namespaces may deliver a namespace later than that of a resource delivers its objects.
func TestReferenceThatIsIgnoredIsReportedWhenItsNamespaceComesIntoScope(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newIgnoring(t)
		w.outside.Store(true)
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.refer("p", "Bad Name")
		w.refer("q", "Bad Name")
		w.pass(3 * time.Minute)
		require.Empty(t, w.reports(), "the namespace is out of scope")
		w.remove("q")
		w.outside.Store(false)
		w.pass(time.Minute)
		require.Equal(t, []string{`Any ns/p uid-1: referents[0].referrers[0]: "Bad Name" names no object`}, w.reports())
		w.pass(10 * time.Minute)
		require.Empty(t, w.reports(), "nothing is new")
		assert.Zero(t, w.Due())
		assert.Zero(t, w.PublishedNamespaces())
	})
}

// Anyone who may create objects can create many.
func TestFewOfManyReferencesThatAreIgnoredAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newIgnoring(t)
		w.outside.Store(true)
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		for n := range 20 {
			w.refer(fmt.Sprint("p", n), "Bad Name")
		}
		require.Empty(t, w.reports(), "the namespace is out of scope")
		w.outside.Store(false)
		for n := range 20 {
			w.refer(fmt.Sprint("p", n), "Bad Name", "s")
		}
		require.Len(t, w.reports(), 10)
		w.pass(time.Hour)
		w.refer("p", "Bad Name")
		require.Len(t, w.reports(), 1)
	})
}
