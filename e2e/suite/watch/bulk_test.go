package watch_test

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func apply(t *testing.T, documents ...string) {
	t.Helper()
	require.NoError(t, cp.Apply(t.Context(), documents...))
}

func remove(t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	client := (&line{}).client(t)
	require.NoError(t, client.Resource(resource).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// The scenarios of the specification that involve selectors.
func TestSelectors(t *testing.T) {
	t.Run("Watcher receives resources matching label selector", func(t *testing.T) {
		ns := cp.Namespace(t)
		apply(t, ingress(ns, "a", "x", "app: web"), ingress(ns, "b", "x", "app: db"), ingress(ns, "c", "x", "app: web"))
		var seen events
		bulk := startBulk(t, (&line{}).client(t), watch.Config{
			GVR: ingresses, Namespace: ns, LabelSelector: "app in (web)", IndexBy: byName, OnObject: seen.onObject,
		})
		assert.Equal(t, []string{"a", "c"}, names(bulk)())
		apply(t, ingress(ns, "a", "x", "app: db"))
		await(t, []string{"c"}, names(bulk))
		apply(t, ingress(ns, "b", "x", "app: web"))
		await(t, []string{"b", "c"}, names(bulk))
		awaitEvents(t, []string{"+a", "+c", "-a", "+b"}, seen.read, "a and c at first, then one leaves and one enters")
	})
	t.Run("Client-side field selector filters resources", func(t *testing.T) {
		ns := cp.Namespace(t)
		apply(t, ingress(ns, "a", "haproxy"), ingress(ns, "b", "nginx"), ingress(ns, "c", "haproxy"))
		var seen events
		bulk := startBulk(t, (&line{}).client(t), watch.Config{
			GVR: ingresses, Namespace: ns, FieldSelector: "spec.ingressClassName=haproxy", IndexBy: byName, OnObject: seen.onObject,
		})
		assert.Equal(t, []string{"a", "c"}, names(bulk)())
		apply(t, ingress(ns, "a", "nginx"))
		await(t, []string{"c"}, names(bulk))
		remove(t, ingresses, ns, "a")
		remove(t, ingresses, ns, "b")
		remove(t, ingresses, ns, "c")
		await(t, []string{}, names(bulk))
		awaitEvents(t, []string{"+a", "+c", "-a", "-c"}, seen.read, "who is no member is not deleted again")
	})
	t.Run("Field selector transition from non-matching to matching", func(t *testing.T) {
		ns := cp.Namespace(t)
		apply(t, ingress(ns, "a", "nginx"))
		var seen events
		bulk := startBulk(t, (&line{}).client(t), watch.Config{
			GVR: ingresses, Namespace: ns, FieldSelector: "spec.ingressClassName=haproxy",
			IndexBy: []string{"spec.defaultBackend.service.port.number"}, OnObject: seen.onObject,
		})
		assert.Empty(t, names(bulk)())
		apply(t, ingress(ns, "a", "haproxy"))
		await(t, []string{"a"}, names(bulk))
		awaitEvents(t, []string{"+a"}, seen.read, "it has entered")
		assert.Len(t, bulk.Store().Get("80"), 1)
	})
	t.Run("Both selectors and ignored fields together", func(t *testing.T) {
		ns := cp.Namespace(t)
		apply(t, ingress(ns, "a", "haproxy", "app: web"), ingress(ns, "b", "haproxy", "app: db"), ingress(ns, "c", "nginx", "app: web"))
		bulk := startBulk(t, (&line{}).client(t), watch.Config{
			GVR: ingresses, Namespace: ns, LabelSelector: "app=web", FieldSelector: "spec.ingressClassName!=nginx",
			IndexBy: []string{"spec.ingressClassName", "metadata.labels.app"}, IgnoreFields: []string{"metadata.managedFields", "status"},
		})
		found := bulk.Store().Get("haproxy", "web")
		require.Len(t, found, 1)
		assert.NotEmpty(t, found[0].GetUID())
		assert.Empty(t, found[0].GetManagedFields(), "server-side apply has left some")
		assert.NotContains(t, found[0].Object, "status")
	})
}

// The API server ends the stream. While the line is cut, objects vanish, are
// created anew and move; then the server restarts, so that it has forgotten the
// events, and the informer must list again.
func TestRelistAfterMissedEvents(t *testing.T) {
	ns := cp.Namespace(t)
	apply(t, ingress(ns, "gone", "x"), ingress(ns, "anew", "x"), ingress(ns, "leaves", "x"), ingress(ns, "comes", "y"), ingress(ns, "same", "x"))
	var seen events
	var book logBook
	wire := &line{}
	bulk := startBulk(t, wire.client(t), watch.Config{
		GVR: ingresses, Namespace: ns, FieldSelector: "spec.ingressClassName=x", IndexBy: []string{"spec.ingressClassName"},
		OnObject: seen.onObject, Logger: book.logger(),
	})
	assert.Equal(t, []string{"anew", "gone", "leaves", "same"}, names(bulk)())
	before := bulk.Store().Object(ns, "same")
	initial := len(seen.read())

	api := cp.Component(controlplane.APIServer)
	require.NoError(t, api.Stop(t.Context()))
	await(t, true, func() bool { at, _ := bulk.LastWatchError(); return !at.IsZero() })
	wire.Cut(t)
	require.NoError(t, api.Start(t.Context()))
	remove(t, ingresses, ns, "gone")
	remove(t, ingresses, ns, "anew")
	apply(t, ingress(ns, "anew", "x"), ingress(ns, "leaves", "y"), ingress(ns, "comes", "x"))
	require.NoError(t, api.Restart(t.Context()))
	wire.Mend()

	await(t, []string{"anew", "comes", "same"}, names(bulk))
	apply(t, ingress(ns, "last", "x")) // the barrier
	await(t, []string{"anew", "comes", "last", "same"}, names(bulk))
	awaitEvents(t, []string{"-gone", "-anew", "+anew", "-leaves", "+comes", "+last"}, func() []string { return seen.read()[initial:] },
		"an object that has not changed is no event")
	assert.Equal(t, before.GetResourceVersion(), bulk.Store().Object(ns, "same").GetResourceVersion())
	assert.True(t, book.contains("level=WARN"), "the server had refused")
}

// A connection that breaks within a stream is an error, also where the next one
// succeeds at once.
func TestConnectionThatBreaks(t *testing.T) {
	for name, reason := range map[string]error{
		"reset": &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "cut": io.EOF,
	} {
		t.Run(name, func(t *testing.T) {
			ns := cp.Namespace(t)
			var book logBook
			errs := make(chan error, 100)
			wire := &line{}
			bulk := startBulk(t, wire.client(t), watch.Config{
				GVR: configMaps, Namespace: ns, IndexBy: byName, Logger: book.logger(),
				OnWatchError: func(_ context.Context, err error) { errs <- err },
			})
			_, err := bulk.LastWatchError()
			require.NoError(t, err)
			await(t, true, wire.Watches)
			wire.Break(t, reason)
			await(t, true, func() bool { _, err := bulk.LastWatchError(); return err != nil })
			require.Error(t, <-errs)
			assert.True(t, book.contains("level=WARN"), "the error of the watch is a warning in the log")
			apply(t, configMap(ns, "a", "1"))
			await(t, []string{"a"}, names(bulk))
		})
	}
}

// What the API server can select it does not even send.
func TestServerSelectsByFieldsThatItSupports(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secret := func(ns, name, kind string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {namespace: " + ns + ", name: " + name + "}\ntype: example.com/" + kind + "\n"
	}
	ns := cp.Namespace(t)
	apply(t, secret(ns, "a", "x"), secret(ns, "b", "y"), secret(ns, "c", "x"))
	cases := map[string]struct {
		selector   string
		sent, want []string
	}{
		"a field of this kind":   {"type=example.com/x", []string{"type=example.com/x"}, []string{"a", "c"}},
		"a field of every kind":  {"metadata.name!=a", []string{"metadata.name!=a"}, []string{"b", "c"}},
		"a field of other kinds": {"metadata.name!=a,spec.x=,kind=Secret", []string{"metadata.name!=a,kind=Secret", "metadata.name!=a"}, []string{"b", "c"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wire := &line{}
			bulk := startBulk(t, wire.client(t), watch.Config{GVR: secrets, Namespace: ns, FieldSelector: c.selector, IndexBy: byName})
			assert.Equal(t, c.want, names(bulk)())
			assert.Equal(t, c.sent, wire.FieldSelectors())
			_, err := bulk.LastWatchError()
			require.NoError(t, err, "a field that the server does not support is none")
		})
	}
}

// Every supported API server gives the initial state without a recorded error,
// whether it streams lists or not.
func TestInitialListIsNoError(t *testing.T) {
	ns := cp.Namespace(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		apply(t, configMap(ns, name, "1"))
	}
	counts := make(chan int, 1)
	bulk := startBulk(t, (&line{}).client(t), watch.Config{
		GVR: configMaps, Namespace: ns, FieldSelector: "data.key=1", IndexBy: byName,
		OnSyncComplete: func(_ context.Context, _ watch.Reader, count int) error { counts <- count; return nil },
	})
	assert.Equal(t, 5, <-counts)
	at, err := bulk.LastWatchError()
	require.NoError(t, err)
	assert.Zero(t, at)
}

func TestAResourceThatIsInstalledLater(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "watch.example.com", Version: "v1", Resource: "gadgets"}
	bulk, err := watch.NewBulk(watch.Config{GVR: gvr, IndexBy: []string{"spec.size"}}, (&line{}).client(t))
	require.NoError(t, err)
	start(t, bulk)
	await(t, true, func() bool { _, err := bulk.LastWatchError(); return err != nil })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = bulk.WaitForSync(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "could not find the requested resource")

	definition := controlplane.CustomResource{Group: gvr.Group, Kind: "Gadget", Plural: gvr.Resource, ClusterScoped: true}.Definition()
	apply(t, definition, "apiVersion: watch.example.com/v1\nkind: Gadget\nmetadata: {name: big}\nspec: {size: 3.0, weight: 1.5}\n")
	_, err = bulk.WaitForSync(t.Context())
	require.NoError(t, err)
	await(t, 1, func() int { return len(bulk.Store().Get("3")) })
	spec := bulk.Store().Object("", "big").Object["spec"]
	assert.Equal(t, map[string]any{"size": int64(3), "weight": 1.5}, spec)
}
