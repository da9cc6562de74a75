package tracking

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// failing are the watches that fail, as "resource" or "resource namespace".
type failing map[string]bool

func (f failing) Failing(resource, namespace string) bool {
	return f[resource] || f[resource+" "+namespace]
}

func (f failing) AnyFailing() bool { return len(f) > 0 }

func (failing) Discovered(watchhealth.Watch, error) {}

// recheckStore is a Store that counts what is looked at.
type recheckStore struct {
	mu   sync.Mutex
	seen []index.Object
	// queue is that of the loop.
	queue workqueue.TypedRateLimitingInterface[workload.Key]
}

func (r *recheckStore) Recheck(_ context.Context, namespace string, ref reference.Ref) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, index.Object{Namespace: namespace, Ref: ref})
	return errors.New("one that fails does not end the round")
}

func mapperOf(kinds ...workload.Kind) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds {
		mapper.Add(kind.GroupVersionKind, meta.RESTScopeNamespace)
	}
	return mapper
}

// trackingWithFailing leads with two workloads of a kind, one in each of two namespaces, that track a ConfigMap and a Secret each.
func trackingWithFailing(t *testing.T, watches failing, live client.Reader, selector labels.Selector) (*fixture, *recheckStore, []workload.Key) {
	t.Helper()
	kind, store := fleet(t, "spec.template"), &recheckStore{}
	l, q := leading(t, Options{
		Store: store, Watches: watches, Mapper: mapperOf(kind), Cache: cached{}, APIReader: live, Scope: scope.Scope{NamespaceSelector: selector},
	})
	l.tracking.watches.add(&watched{kind: kind, workloads: single{listing(kind, "old")}})
	keys := []workload.Key{{Kind: kind.ID(), Namespace: "bank", Name: "web"}, {Kind: kind.ID(), Namespace: "shop", Name: "web"}}
	for _, key := range keys {
		l.tracking.index.SetRefs(key, []reference.Ref{{Kind: reference.ConfigMap, Name: "app"}, {Kind: reference.Secret, Name: "db"}})
	}
	store.queue = q
	return l, store, keys
}

// listing is a workload with a list of ConfigMaps.
func listing(kind workload.Kind, names string) workload.Summary {
	return summaryOf(kind, map[string]any{"metadata": map[string]any{
		"namespace": "shop", "name": "web", "annotations": map[string]any{annotation.DefaultPrefix + "configmaps": names},
	}})
}

// queued empties the queue.
func (r *recheckStore) queued() []workload.Key {
	var keys []workload.Key
	q := r.queue
	for q.Len() > 0 {
		key, _ := q.Get()
		q.Done(key)
		keys = append(keys, key)
	}
	return keys
}

func TestRecheckLooksAtWhatFailingWatchesWouldReport(t *testing.T) {
	t.Parallel()
	app, db := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, reference.Ref{Kind: reference.Secret, Name: "db"}
	selector, err := labels.Parse("team=a")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		watches  failing
		selector labels.Selector
		places   []index.Object
		queued   []string // namespaces
	}{
		"all work":         {watches: failing{}},
		"Secrets":          {watches: failing{"secrets": true}, places: []index.Object{{Namespace: "bank", Ref: db}, {Namespace: "shop", Ref: db}}},
		"ConfigMaps":       {watches: failing{"configmaps": true}, places: []index.Object{{Namespace: "bank", Ref: app}, {Namespace: "shop", Ref: app}}},
		"of one namespace": {watches: failing{"secrets shop": true}, places: []index.Object{{Namespace: "shop", Ref: db}}},
		"workloads":        {watches: failing{"fleets.example.com": true}, queued: []string{"bank", "shop"}},
		"of one, too":      {watches: failing{"fleets.example.com shop": true}, queued: []string{"shop"}},
		"as many of both": {
			watches: failing{"secrets shop": true, "fleets.example.com shop": true},
			places:  []index.Object{{Namespace: "shop", Ref: db}}, queued: []string{"shop"},
		},
		"other workloads":     {watches: failing{"deployments.apps": true}},
		"namespaces":          {watches: failing{"namespaces": true}, selector: selector, queued: []string{"bank", "shop"}},
		"of no concern to us": {watches: failing{"namespaces": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, store, _ := trackingWithFailing(t, c.watches, nil, c.selector)
			recheckOnce(t.Context(), l.tracking.rechecks)
			assert.ElementsMatch(t, c.places, store.seen)
			var queued []string
			for _, key := range store.queued() {
				queued = append(queued, key.Namespace)
			}
			assert.ElementsMatch(t, c.queued, queued)
		})
	}
}

// referring is a Store that knows custom resources.
type referring struct {
	*recheckStore
	referred map[string][]reference.Ref
}

func (r referring) Referred() map[string][]reference.Ref { return r.referred }

func (referring) ClusterScoped(kind reference.Kind) bool { return kind == "gateways.example.org" }

// No workload names what a custom resource refers to.
func TestRecheckLooksAtWhatCustomResourcesReferTo(t *testing.T) {
	t.Parallel()
	db, tls := reference.Ref{Kind: reference.Secret, Name: "db"}, reference.Ref{Kind: reference.Secret, Name: "tls"}
	route := reference.Ref{Kind: "routes.example.org", Name: "r"}
	l, store, _ := trackingWithFailing(t, failing{"secrets": true, "routes.example.org": true}, nil, nil)
	l.tracking.rechecks.with.Store = referring{store, map[string][]reference.Ref{
		"shop": {db, tls, {Kind: reference.ConfigMap, Name: "settings"}}, "elsewhere": {tls},
		"": {route},
	}}
	recheckOnce(t.Context(), l.tracking.rechecks)
	assert.ElementsMatch(t, []index.Object{
		{Namespace: "bank", Ref: db}, {Namespace: "shop", Ref: db}, {Namespace: "shop", Ref: tls}, {Namespace: "elsewhere", Ref: tls}, {Ref: route},
	}, store.seen, "each once, and nothing of a watch that works")
}

func TestRecheckIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, store, keys := trackingWithFailing(t, failing{"secrets": true}, nil, nil)
		var refs []reference.Ref
		for n := range 1000 {
			refs = append(refs, reference.Ref{Kind: reference.Secret, Name: fmt.Sprintf("s%04d", n)})
		}
		l.tracking.index.SetRefs(keys[0], refs)
		l.tracking.index.Delete(keys[1])
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.tracking.Recheck(ctx) }()
		looked := func() int {
			synctest.Wait()
			store.mu.Lock()
			defer store.mu.Unlock()
			return len(store.seen)
		}
		<-time.After(recheckEvery - time.Second)
		assert.Zero(t, looked())
		<-time.After(2 * time.Second)
		assert.InDelta(t, 50, looked(), 1, "an API server that has a problem must not have one more")
		<-time.After(30 * time.Second)
		assert.Equal(t, 1000, looked())
		<-time.After(recheckEvery)
		assert.Equal(t, 2000, looked(), "each minute again")
		cancel()
		require.NoError(t, <-ended)
	})
}

// liveReader is an API server with one workload or namespace; err if it cannot be read.
type liveReader struct {
	client.Reader
	err   error
	lists string
}

func (r liveReader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if r.err != nil {
		return r.err
	}
	switch o := object.(type) {
	case *unstructured.Unstructured:
		o.SetNamespace("shop")
		o.SetName("web")
		o.SetAnnotations(map[string]string{annotation.DefaultPrefix + "configmaps": r.lists})
	case *metav1.PartialObjectMetadata:
		o.SetLabels(map[string]string{"team": "a"})
	}
	return nil
}

// cached is a cache that is behind: it has other labels of the namespace.
type cached struct{ cache.Cache }

func (cached) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetLabels(map[string]string{"team": "b"})
	return nil
}

func TestWorkloadIsReadLiveWhileItsWatchFails(t *testing.T) {
	t.Parallel()
	old, fresh := reference.Ref{Kind: reference.ConfigMap, Name: "old"}, reference.Ref{Kind: reference.ConfigMap, Name: "fresh"}
	gone := apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "fleets"}, "web")
	for name, c := range map[string]struct {
		watches failing
		live    liveReader
		tracks  reference.Ref
		indexed []reference.Ref
		gone    bool
	}{
		"the watch works":             {watches: failing{}, live: liveReader{lists: "fresh"}, tracks: old, indexed: []reference.Ref{old}},
		"the watch fails":             {watches: failing{"fleets.example.com": true}, live: liveReader{lists: "fresh"}, tracks: fresh, indexed: []reference.Ref{fresh}},
		"the workload cannot be read": {watches: failing{"fleets.example.com": true}, live: liveReader{err: errors.New("away")}, tracks: old, indexed: []reference.Ref{old}},
		"the workload was deleted":    {watches: failing{"fleets.example.com": true}, live: liveReader{err: gone}, gone: true},
		"another watch than its":      {watches: failing{"deployments.apps": true}, live: liveReader{lists: "fresh"}, tracks: old, indexed: []reference.Ref{old}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _, keys := trackingWithFailing(t, c.watches, c.live, nil)
			key := keys[1]
			l.tracking.index.SetRefs(key, []reference.Ref{old})
			o, found := l.tracking.Get(t.Context(), key)
			assert.Equal(t, !c.gone, found)
			if found {
				assert.Equal(t, []reference.Ref{c.tracks}, reloadtest.Reader().Intent(o).Refs())
			}
			var indexed []reference.Ref
			for _, at := range l.tracking.index.Tracked(func(at index.Object) bool { return at.Namespace == "shop" }) {
				indexed = append(indexed, at.Ref)
			}
			assert.Equal(t, c.indexed, indexed)
		})
	}
}

func TestNamespaceIsReadLiveWhileItsWatchFails(t *testing.T) {
	t.Parallel()
	selector, err := labels.Parse("team=a")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		watches failing
		live    liveReader
		want    bool
	}{
		"the watch works":              {failing{}, liveReader{}, false},
		"the watch fails":              {failing{"namespaces": true}, liveReader{}, true},
		"the namespace cannot be read": {failing{"namespaces": true}, liveReader{err: errors.New("forbidden")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _, keys := trackingWithFailing(t, c.watches, c.live, selector)
			assert.Equal(t, c.want, l.tracking.Scope(t.Context(), keys[1], nil) == Inside)
		})
	}
}

// recovering is a watch that fails, with one workload of which it delivers other versions.
type recovering struct {
	mu   sync.Mutex
	kept workload.Summary
	// deliver is what the watch calls.
	deliver changed
}

func (r *recovering) Run(ctx context.Context) { <-ctx.Done() }

func (r *recovering) Get(_, _ string) (workload.Summary, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept, r.kept.Kept != nil
}

// put delivers a version.
func (r *recovering) put(after workload.Summary) {
	r.mu.Lock()
	before := r.kept
	r.kept = after
	r.mu.Unlock()
	r.deliver(before, after)
}

// duringRead is an API server that something happens during a read of.
type duringRead struct {
	liveReader
	happens func()
}

func (d duringRead) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	err := d.liveReader.Get(ctx, key, object, opts...)
	d.happens()
	return err
}

// What was read live stands in for the watch until that delivers the workload again, be it the version from before.
func TestWatchThatRecoversReplacesWhatWasReadLive(t *testing.T) {
	t.Parallel()
	ref := func(name string) reference.Ref { return reference.Ref{Kind: reference.ConfigMap, Name: name} }
	gone := apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "fleets"}, "web")
	for name, c := range map[string]struct {
		live liveReader
		// delivers is what the watch delivers: during the read, or after it.
		delivers string
		during   bool
		read     reference.Ref
	}{
		"during the read, another version":  {live: liveReader{lists: "fresh"}, delivers: "new", during: true, read: ref("new")},
		"during the read, the same content": {live: liveReader{lists: "fresh"}, delivers: "old", during: true, read: ref("old")},
		"during the read, created again":    {live: liveReader{err: gone}, delivers: "new", during: true, read: ref("new")},
		"later, another version":            {live: liveReader{lists: "fresh"}, delivers: "new", read: ref("fresh")},
		"later, the same content":           {live: liveReader{lists: "fresh"}, delivers: "old", read: ref("fresh")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, store, keys := trackingWithFailing(t, failing{"fleets.example.com": true}, nil, nil)
			key := keys[1]
			kind := fleet(t, "spec.template")
			watch := &recovering{kept: listing(kind, "old")}
			w := &watched{kind: kind, workloads: watch}
			watch.deliver = func(before, after workload.Summary) { l.tracking.changes.changed(w, before, after, "") }
			l.tracking.watches.add(w)
			l.tracking.index.SetRefs(key, []reference.Ref{ref("old")})
			deliver := func() { watch.put(listing(kind, c.delivers)) }
			l.tracking.live.apiReader = c.live
			if c.during {
				l.tracking.live.apiReader = duringRead{c.live, deliver}
			}
			o, found := l.tracking.Get(t.Context(), key)
			require.True(t, found, "the workload is read live")
			assert.Equal(t, []reference.Ref{c.read}, reloadtest.Reader().Intent(o).Refs())
			if !c.during {
				deliver()
				assert.Contains(t, store.queued(), key)
			}
			tracked := l.tracking.index.Tracked(func(at index.Object) bool { return at.Namespace == "shop" })
			assert.Equal(t, []index.Object{{Namespace: "shop", Ref: ref(c.delivers)}}, tracked)
		})
	}
}

// The labels that were read live can be another time than those that the watch shows before and after it failed.
func TestNamespaceThatWasReadLiveIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	selector, err := labels.Parse("team=b")
	require.NoError(t, err)
	watches := failing{"namespaces": true}
	l, store, keys := trackingWithFailing(t, watches, liveReader{}, selector)
	shop := func(version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: version, Labels: map[string]string{"team": "b"}}}
	}
	require.Equal(t, Outside, l.tracking.Scope(t.Context(), keys[1], nil), "by the labels of now")
	delete(watches, "namespaces")
	l.tracking.namespaces.OnUpdate(shop("1"), shop("3"))
	assert.Equal(t, keys[1:], store.queued())
	l.tracking.namespaces.OnUpdate(shop("3"), shop("4"))
	assert.Empty(t, store.queued(), "once")
}

// single has one workload only, whatever is asked for.
type single struct{ workload workload.Summary }

func (s single) Run(ctx context.Context) { <-ctx.Done() }

func (s single) Get(_, _ string) (workload.Summary, bool) { return s.workload, true }
