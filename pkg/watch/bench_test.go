package watch_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// The initial sync is measured on a real API server, by the scenario watch-sync
// of `make bench`; watch-events runs what is here against its budgets.

// many is the number of objects among which one is looked up.
const many = 20000

// typical is an object of the usual size: about 2 kB, a third of it managed fields.
func typical(i int) *unstructured.Unstructured {
	managed := []any{}
	for _, manager := range []string{"kubectl", "controller"} {
		managed = append(managed, map[string]any{
			"manager": manager, "operation": "Apply", "apiVersion": "networking.k8s.io/v1", "time": "2026-01-01T00:00:00Z",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:ingressClassName": map[string]any{}, "f:rules": map[string]any{}, "f:tls": map[string]any{}}},
		})
	}
	rules := []any{}
	for host := range 4 {
		rules = append(rules, map[string]any{"host": fmt.Sprintf("h%d.example", host), "http": map[string]any{"paths": []any{map[string]any{
			"path": "/", "pathType": "Prefix", "backend": map[string]any{"service": map[string]any{"name": "web", "port": map[string]any{"number": int64(80)}}},
		}}}})
	}
	return object("ns"+strconv.Itoa(i%100)+"/object-"+strconv.Itoa(i),
		class("class-"+strconv.Itoa(i%10)), with(rules, "spec", "rules"), with(managed, "metadata", "managedFields"))
}

// feed is a client that lists some objects and whose stream a benchmark fills:
// what an event costs without network and decoding.
type feed struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface
	states [2]*unstructured.UnstructuredList
	stream chan kubewatch.Event
	// inFlight limits the events under way: informers buffer without bound.
	inFlight chan struct{}
}

func newFeed() *feed {
	const objects = 1000
	f := &feed{stream: make(chan kubewatch.Event), inFlight: make(chan struct{}, 1000)}
	for state := range f.states {
		f.states[state] = &unstructured.UnstructuredList{}
		f.states[state].SetResourceVersion("1")
		for i := range objects {
			u := typical(i)
			u.SetResourceVersion(strconv.Itoa(state + 1))
			f.states[state].Items = append(f.states[state].Items, *u)
		}
	}
	return f
}

func (f *feed) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return f
}

func (f *feed) Namespace(string) dynamic.ResourceInterface { return f }
func (*feed) IsWatchListSemanticsUnSupported() bool        { return true }

func (f *feed) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return f.states[0], nil
}

func (f *feed) Watch(context.Context, metav1.ListOptions) (kubewatch.Interface, error) {
	return kubewatch.NewProxyWatcher(f.stream), nil
}

// update sends n updates, to the objects in turn.
func (f *feed) update(n int) {
	for i := range n {
		round, which := i/len(f.states[0].Items)+1, i%len(f.states[0].Items)
		f.inFlight <- struct{}{}
		f.stream <- kubewatch.Event{Type: kubewatch.Modified, Object: &f.states[round%2].Items[which]}
	}
}

// BenchmarkEvents is the cost of an update, from the stream through informer,
// store and debouncer to OnChange; and of one in a bare informer, from the
// stream to the handler.
func BenchmarkEvents(b *testing.B) {
	b.Run("bare informer", func(b *testing.B) {
		f, handled := newFeed(), make(chan struct{})
		informer := dynamicinformer.NewFilteredDynamicInformer(f, ingresses, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
		count := 0
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) {
			<-f.inFlight
			if count++; count == b.N {
				close(handled)
			}
		}})
		require.NoError(b, err)
		go informer.RunWithContext(b.Context())
		require.True(b, cache.WaitFor(b.Context(), "", registration.HasSyncedChecker()), "the first list is delivered")
		measure(b, f, handled)
	})
	b.Run("Bulk", func(b *testing.B) { benchmarkBulk(b, watch.Config{}) })
	b.Run("Bulk with everything", func(b *testing.B) {
		benchmarkBulk(b, watch.Config{
			FieldSelector: "spec.ingressClassName!=none,spec.rules[*].host=h3.example",
			IndexBy:       []string{"spec.ingressClassName", "spec.rules[*].host"},
			IgnoreFields:  []string{"metadata.managedFields", "spec.tls[*].secretName"},
			Transform:     func(*unstructured.Unstructured) {},
		})
	})
}

func benchmarkBulk(b *testing.B, config watch.Config) {
	b.Helper()
	f, handled := newFeed(), make(chan struct{})
	count, synced := 0, atomic.Bool{}
	config.GVR, config.DebounceInterval = ingresses, time.Millisecond
	if config.IndexBy == nil {
		config.IndexBy = byName
	}
	config.OnObject = func(before, _ *unstructured.Unstructured) {
		if before != nil {
			<-f.inFlight
		}
	}
	config.OnSyncComplete = func(context.Context, watch.Reader, int) error { synced.Store(true); return nil }
	config.OnChange = func(_ context.Context, _ watch.Reader, stats watch.ChangeStats) error {
		if count += stats.Modified; count == b.N {
			close(handled)
		}
		return nil
	}
	bulk, err := watch.NewBulk(config, f)
	require.NoError(b, err)
	go bulk.Start(b.Context()) //nolint:errcheck // it runs until the benchmark ends
	require.Eventually(b, synced.Load, time.Minute, time.Millisecond)
	measure(b, f, handled)
}

func measure(b *testing.B, f *feed, handled <-chan struct{}) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	f.update(b.N)
	<-handled
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkDebouncer records changes as fast as it can.
func BenchmarkDebouncer(b *testing.B) {
	total := 0
	debouncer, err := watch.NewDebouncer(watch.DebouncerConfig{
		Interval: time.Millisecond,
		Callback: func(_ context.Context, stats watch.ChangeStats) error { total += stats.Total(); return nil },
	})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { debouncer.Run(ctx); close(ended) }()
	b.ReportAllocs()
	for b.Loop() {
		debouncer.Record(watch.ChangeStats{Modified: 1})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	cancel()
	<-ended
	require.LessOrEqual(b, total, b.N)
}

// BenchmarkProcess is what an Indexer, a Selector and a Store do for one update.
func BenchmarkProcess(b *testing.B) {
	indexer, err := watch.NewIndexer(watch.IndexerConfig{IndexBy: byName, IgnoreFields: []string{"metadata.managedFields"}})
	require.NoError(b, err)
	selector, err := watch.NewSelector("spec.ingressClassName!=none")
	require.NoError(b, err)
	store, err := watch.NewStore(indexer.Width())
	require.NoError(b, err)
	object := typical(0)
	keys := indexer.Process(object)
	matches := false
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"Prepare", func() { indexer.Prepare(object) }},
		{"Keys", func() { keys = indexer.Keys(object) }},
		{"Matches", func() { matches = selector.Matches(object) }},
		{"Put", func() { _, err = store.Put(object, keys...) }},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				part.do()
			}
		})
	}
	require.NoError(b, err)
	require.Len(b, keys, 1)
	require.True(b, matches, "the keys match")
}

// BenchmarkGet looks up among 20,000 objects: one by its whole key, the 200 of
// a namespace, and one by its name.
func BenchmarkGet(b *testing.B) {
	store, err := watch.NewStore(2)
	require.NoError(b, err)
	for i := range many {
		u := object("ns" + strconv.Itoa(i%100) + "/object-" + strconv.Itoa(i))
		_, err := store.Put(u, watch.Key{u.GetNamespace(), u.GetName()})
		require.NoError(b, err)
	}
	for _, by := range []struct {
		name string
		want int
		get  func() []*unstructured.Unstructured
	}{
		{"whole key", 1, func() []*unstructured.Unstructured { return store.Get("ns7", "object-7") }},
		{"first of two", many / 100, func() []*unstructured.Unstructured { return store.Get("ns7") }},
	} {
		b.Run(by.name, func(b *testing.B) {
			b.ReportAllocs()
			var found []*unstructured.Unstructured
			for b.Loop() {
				found = by.get()
			}
			require.Len(b, found, by.want)
		})
	}
	b.Run("identity", func(b *testing.B) {
		b.ReportAllocs()
		var found *unstructured.Unstructured
		for b.Loop() {
			found = store.Object("ns7", "object-7")
		}
		require.NotNil(b, found)
	})
}
