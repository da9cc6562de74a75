package chain_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

var (
	proxies  = schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: "kafkaproxies"}
	services = schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: "kafkaservices"}
	routes   = schema.GroupVersionResource{Group: "kroxylicious.io", Version: "v1alpha1", Resource: "kafkaroutes"}
	proxy    = reference.Ref{Kind: "kafkaproxies.kroxylicious.io", Name: "p"}
	tls      = reference.Ref{Kind: reference.Secret, Name: "tls"}
)

// proxyToSecret is proxies → services → secrets.
func proxyToSecret() []referent.Definition {
	return []referent.Definition{
		{ID: "services", GVR: services, Refs: []referent.EdgeDefinition{{Resource: "secrets", Name: "spec.secret"}}},
		{ID: "proxies", GVR: proxies, Publish: true, Refs: []referent.EdgeDefinition{{Resource: "services", Name: "spec.service"}}},
	}
}

// world is a chain with a cluster in memory, in fake time.
type world struct {
	*testing.T
	*chain.Chain
	client *fake.FakeDynamicClient

	mu       sync.Mutex
	version  int
	contents map[reference.Ref]string
	// failing is what reads of config objects fail with.
	failing error
	// hanging has reads of config objects hang until they are given up.
	hanging bool
	// reading is how long a read of config objects takes.
	reading time.Duration
	// lingering is how long the answer takes after config objects have been read.
	lingering time.Duration
	events    []string
	// reported are the times at which the proxy was reported as changed.
	reported []time.Time
	// refusals are the digests that were reported as not written.
	refusals []chain.Unpublished
	ring     digest.Ring
	reads    int
	// outside: the namespace is out of scope.
	outside atomic.Bool
	// applying is called by each write before it reaches the client, which makes one write after the other by itself; nil calls nothing.
	applying func()
	// stalled has writes of objects whose names have a prefix hang until they are given up; nil has none hang.
	stalled atomic.Pointer[string]
	// unanswered has live reads of custom resources hang until they are given up.
	unanswered atomic.Bool
	// getting is called by each live read of a custom resource; nil calls nothing.
	getting func(context.Context) error
	// listing is how long a list of custom resources takes.
	listing atomic.Int64
	// listed is called by each list of custom resources, with its limit; nil calls nothing.
	listed func(context.Context, int64) error
}

// client is the client in memory of a world, by its own entry for writes.
type client struct {
	*fake.FakeDynamicClient

	of *world
}

func (c client) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return resources{c.FakeDynamicClient.Resource(resource), c.of}
}

type resources struct {
	dynamic.NamespaceableResourceInterface

	of *world
}

func (r resources) Namespace(namespace string) dynamic.ResourceInterface {
	return namespaced{r.NamespaceableResourceInterface.Namespace(namespace), r.of}
}

type namespaced struct {
	dynamic.ResourceInterface

	of *world
}

func (n namespaced) Apply(
	ctx context.Context, name string, object *unstructured.Unstructured, options metav1.ApplyOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	if prefix := n.of.stalled.Load(); prefix != nil && strings.HasPrefix(name, *prefix) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if n.of.applying != nil {
		n.of.applying()
	}
	return n.ResourceInterface.Apply(ctx, name, object, options, subresources...)
}

func (n namespaced) Get(
	ctx context.Context, name string, options metav1.GetOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	if n.of.unanswered.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if n.of.getting != nil {
		if err := n.of.getting(ctx); err != nil {
			return nil, err
		}
	}
	return n.ResourceInterface.Get(ctx, name, options, subresources...)
}

func (n namespaced) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if takes := time.Duration(n.of.listing.Load()); takes > 0 {
		<-time.After(takes)
	}
	if n.of.listed != nil {
		if err := n.of.listed(ctx, options.Limit); err != nil {
			return nil, err
		}
	}
	return n.ResourceInterface.List(ctx, options)
}

func newWorld(t *testing.T, namespaces ...string) *world {
	t.Helper()
	return newWorldWith(t, chain.Options{Namespaces: namespaces})
}

// newWorldWith is a world of an installation with the Namespaces and the kinds Without of some options.
func newWorldWith(t *testing.T, o chain.Options) *world {
	t.Helper()
	w := &world{T: t, contents: map[reference.Ref]string{}, ring: digesttest.Ring(t, "1")}
	w.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		proxies: "KafkaProxyList", services: "KafkaServiceList", routes: "KafkaRouteList",
	})
	o.Client, o.Config, o.Ring, o.Annotation, o.Log = client{w.client, w}, w, w.currentRing, "example.org/checksum", logr.Discard()
	o.Publishes = func(string) bool { return !w.outside.Load() }
	w.Chain = chain.New(o)
	w.OnEvent(func(e configstate.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e.Namespace+" "+e.Ref.String())
		if e.Ref == proxy {
			w.reported = append(w.reported, time.Now())
		}
	})
	w.OnUnpublished(func(u chain.Unpublished) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refusals = append(w.refusals, u)
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return w
}

// rotate puts other keys in force.
func (w *world) rotate(r digest.Ring) {
	w.mu.Lock()
	w.ring = r
	w.mu.Unlock()
	w.KeysChanged()
}

func (w *world) currentRing() digest.Ring {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ring
}

// ReadIfChanged reads config objects of the namespace ns.
func (w *world) ReadIfChanged(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	w.mu.Lock()
	lingering := w.lingering
	w.mu.Unlock()
	states, err := w.read(ctx, namespace, refs)
	if lingering > 0 {
		<-time.After(lingering)
	}
	return states, err
}

func (w *world) read(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	w.mu.Lock()
	hanging, takes := w.hanging, w.reading
	w.mu.Unlock()
	if takes > 0 {
		<-time.After(takes)
	}
	if hanging {
		<-ctx.Done()
		return nil, &configstate.ReadError{Namespace: namespace, Ref: refs[0], Err: ctx.Err()}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if w.failing != nil {
		return nil, &configstate.ReadError{Namespace: namespace, Ref: refs[0], Err: w.failing}
	}
	states := map[reference.Ref]digest.State{}
	for _, ref := range refs {
		states[ref] = digest.State{Absent: true}
		if content, ok := w.contents[ref]; ok {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name}, Data: map[string][]byte{"k": []byte(content)}}
			states[ref] = digest.StateOf(digest.OfSecret(secret), "u", "1", w.ring)
		}
	}
	return states, nil
}

// ReadLive is ReadIfChanged.
func (w *world) ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return w.ReadIfChanged(ctx, namespace, refs)
}

// set gives a config object a content, and reports it.
func (w *world) set(ref reference.Ref, content string) {
	w.mu.Lock()
	w.contents[ref] = content
	w.mu.Unlock()
	w.ConfigChanged(configstate.Event{Namespace: "ns", Ref: ref, Type: configstate.Modified})
}

// put creates or updates a custom resource, perhaps with annotations.
func (w *world) put(resource schema.GroupVersionResource, name string, spec map[string]any, annotations ...map[string]string) {
	w.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	for _, all := range annotations {
		u.SetAnnotations(all)
	}
	w.store(resource, name, u)
}

// putStatus creates or updates a custom resource that has a status alone.
func (w *world) putStatus(resource schema.GroupVersionResource, name string, status map[string]any) {
	w.Helper()
	w.store(resource, name, &unstructured.Unstructured{Object: map[string]any{"status": status}})
	synctest.Wait() // the client buffers some events only
}

func (w *world) store(resource schema.GroupVersionResource, name string, u *unstructured.Unstructured) {
	w.Helper()
	w.version++
	u.SetGroupVersionKind(resource.GroupVersion().WithKind("Any"))
	u.SetNamespace(cmp.Or(u.GetNamespace(), "ns"))
	u.SetName(name)
	u.SetUID("uid-" + "1")
	u.SetResourceVersion(fmt.Sprint(w.version))
	at := w.client.Resource(resource).Namespace(u.GetNamespace())
	if _, err := at.Update(w.Context(), u, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = at.Create(w.Context(), u, metav1.CreateOptions{})
		require.NoError(w, err)
	}
}

// graph makes a valid one, and waits until it is known.
func (w *world) graph() {
	w.Helper()
	w.mu.Lock()
	w.contents[tls] = "1"
	w.mu.Unlock()
	w.put(services, "s", map[string]any{"secret": "tls"})
	w.put(proxies, "p", map[string]any{"service": "s"})
	w.Configure(proxyToSecret())
	w.pass(time.Second)
}

// pass lets fake time pass.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// readCount is how often config objects were read.
func (w *world) readCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}

// hold is why the proxy is held; empty if it is not.
func (w *world) hold() string {
	state := w.State("ns", proxy)
	if state.Hold == nil {
		require.NotEmpty(w, state.Entries)
		return ""
	}
	require.Empty(w, state.Entries)
	require.False(w, state.Absent, "an object with a Hold is not absent")
	return state.Hold.Reason
}

// entry is the Entry of the proxy.
func (w *world) entry() digest.Entry {
	w.Helper()
	require.Empty(w, w.hold())
	newest, _ := w.currentRing().Newest()
	entry, ok := w.State("ns", proxy).Entry(newest.ID)
	require.True(w, ok, "the state has an Entry under the newest key")
	return entry
}

// take returns the events since it was called before.
func (w *world) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// refuse has lists of a resource fail.
func (w *world) refuse(resource schema.GroupVersionResource, err error) (allow func()) {
	refused := true
	w.client.PrependReactor("list", resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return refused, nil, err
	})
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		refused = false
	}
}

// refuseWatch has watches of a resource fail, and lists succeed.
func (w *world) refuseWatch(resource schema.GroupVersionResource, err error) (allow func()) {
	var allowed atomic.Bool
	w.client.PrependWatchReactor(resource.Resource, func(clienttesting.Action) (bool, watch.Interface, error) {
		return !allowed.Load(), nil, err
	})
	return func() { allowed.Store(true) }
}

// fail has reads of config objects fail; nil lets them succeed.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = err
}

// accepted is the answer to a write that is stored as it is, without an event of it.
func accepted(action clienttesting.Action) (bool, runtime.Object, error) {
	written := &unstructured.Unstructured{}
	err := written.UnmarshalJSON(action.(clienttesting.PatchAction).GetPatch())
	return true, written, err
}
