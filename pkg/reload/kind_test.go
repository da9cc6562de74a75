package reload

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/live"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// informers is a cache that knows which kinds somebody watches, and lets a test be the API server.
type informers struct {
	cache.Cache
	attached chan toolscache.ResourceEventHandler

	mu       sync.Mutex
	unserved map[string]bool
	watched  map[string]bool
	onGet    func(*unstructured.Unstructured)
}

func (i *informers) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	kind := obj.GetObjectKind().GroupVersionKind()
	if i.unserved[kind.Kind] {
		return nil, &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
	}
	i.watched[kind.Kind] = true
	return informer{of: i}, nil
}

func (i *informers) RemoveInformer(_ context.Context, obj client.Object) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.watched, obj.GetObjectKind().GroupVersionKind().Kind)
	return nil
}

func (i *informers) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	i.onGet(obj.(*unstructured.Unstructured))
	return nil
}

func (i *informers) names() map[string]bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	names := map[string]bool{}
	for name := range i.watched {
		names[name] = true
	}
	return names
}

type informer struct {
	cache.Informer
	of *informers
}

func (i informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.of.attached <- h
	return nil, nil //nolint:nilnil // nobody looks at it
}

func fleet(t *testing.T, path string) workload.Kind {
	t.Helper()
	kind, err := workload.ParseKind("example.com/v1/Fleet=" + path)
	require.NoError(t, err)
	return kind
}

func leading(t *testing.T, c *informers) *loop {
	t.Helper()
	c.attached, c.watched = make(chan toolscache.ResourceEventHandler, 10), map[string]bool{}
	keys, err := annotation.NewKeys(annotation.DefaultPrefix)
	require.NoError(t, err)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Key]())
	t.Cleanup(q.ShutDown)
	l := &loop{
		now: time.Now, index: newIndex(), memory: newMemory(), backoff: newBackoff(), watches: newWatches(), recent: newRecent(0), cache: c,
		opts: Options{Reader: stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}}}},
	}
	l.queue.Store(&queue{q})
	now := time.Now()
	l.leads.Store(&now)
	return l
}

func follow(t *testing.T, l *loop, kinds *live.Kinds) {
	t.Helper()
	kinds.Follow(func(kind workload.Kind) { l.join(t.Context(), kind, logr.Discard()) }, l.leave)
}

func TestKindsComeAndGo(t *testing.T) {
	t.Parallel()
	c := &informers{}
	l := leading(t, c)
	builtin := workload.NewKinds(workload.Builtin()...)
	kinds := live.NewKinds(builtin)
	follow(t, l, kinds)
	for range 4 {
		<-c.attached
	}
	assert.Equal(t, map[string]bool{"DaemonSet": true, "Deployment": true, "StatefulSet": true, "CronJob": true}, c.names(),
		"Jobs are not watched")

	kind := fleet(t, "spec.template")
	kinds.Set(builtin.Override(kind))
	h := <-c.attached
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	key := Key{Kind: kind.ID(), Namespace: "shop", Name: "web"}
	h.OnAdd(deployment(kind, "web"), true)
	require.Equal(t, []Key{key}, l.index.Trackers("shop", app))
	l.memory.Due(key, time.Now())
	l.backoff.rarely.When(key)
	queue := l.queue.Load()
	taken, _ := queue.Get() // it is under treatment when the kind goes

	kinds.Set(builtin)
	assert.NotContains(t, c.names(), "Fleet", "its informer is removed before Set returns")
	assert.Contains(t, c.names(), "Deployment", "the others stay")
	assert.Empty(t, l.index.Trackers("shop", app))
	_, due := l.memory.OldestDue()
	assert.Zero(t, due, "nothing is remembered of its workloads")
	assert.Zero(t, l.backoff.rarely.NumRequeues(key))
	h.OnAdd(deployment(kind, "late"), false)
	h.OnUpdate(deployment(kind, "web"), deployment(kind, "late"))
	h.OnDelete(deployment(kind, "web"))
	assert.Empty(t, l.index.All(), "an event that comes late is not listened to")

	l.memory.Due(taken, time.Now())
	queue.Done(taken)
	again, _ := queue.Get()
	require.Equal(t, key, again, "what was under treatment comes back")
	_, found, err := l.object(t.Context(), again)
	require.NoError(t, err)
	assert.False(t, found, "and is found to be gone, so that it is forgotten")
}

// The objects in the cache are pruned by the path to the template: none may be read by another one.
func TestTemplateThatMoves(t *testing.T) {
	t.Parallel()
	c := &informers{}
	l := leading(t, c)
	before, after := fleet(t, "spec.template"), fleet(t, "spec.pods")
	kinds := live.NewKinds(workload.NewKinds(before))
	follow(t, l, kinds)
	old := <-c.attached
	key := Key{Kind: before.ID(), Namespace: "shop", Name: "web"}
	c.onGet = func(*unstructured.Unstructured) {}
	o, found, err := l.object(t.Context(), key)
	require.NoError(t, err)
	require.True(t, found)
	assert.Equal(t, before, o.Kind)

	c.onGet = func(*unstructured.Unstructured) { kinds.Set(workload.NewKinds(after)) }
	_, found, err = l.object(t.Context(), key)
	require.NoError(t, err)
	assert.False(t, found, "the template moved while the object was read")
	h := <-c.attached
	old.OnAdd(deployment(before, "web"), false)
	assert.Empty(t, l.index.All(), "the old informer is not listened to")
	h.OnAdd(deployment(after, "web"), true)
	assert.Len(t, l.index.All(), 1, "the new one is")
	c.onGet = func(*unstructured.Unstructured) {}
	o, found, err = l.object(t.Context(), key)
	require.NoError(t, err)
	require.True(t, found)
	assert.Equal(t, after, o.Kind)
}

// A kind that the cluster does not serve is waited for; taking it away ends that.
func TestUnservedKindGoes(t *testing.T) {
	t.Parallel()
	c := &informers{unserved: map[string]bool{"Fleet": true}}
	l := leading(t, c)
	kinds := live.NewKinds(workload.NewKinds())
	follow(t, l, kinds)
	kinds.Set(workload.NewKinds(fleet(t, "spec.template")))
	w := l.watches.get("example.com/v1/Fleet")
	require.NotNil(t, w)
	kinds.Set(workload.NewKinds())
	<-w.stopped
	assert.Nil(t, l.watches.get("example.com/v1/Fleet"))
	assert.Empty(t, c.names())
}
