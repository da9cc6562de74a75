package watch_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func ExampleBulk() {
	client := fakeClient(object("shop/web", class("haproxy")), object("shop/blog", class("nginx"))) // dynamic.NewForConfig in real life
	synced := make(chan struct{})
	bulk, err := watch.NewBulk(watch.Config{
		GVR:           schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
		FieldSelector: "spec.ingressClassName=haproxy",
		IndexBy:       []string{"metadata.namespace", "metadata.name"},
		IgnoreFields:  []string{"metadata.managedFields"},
		OnChange: func(_ context.Context, _ watch.Reader, stats watch.ChangeStats) error {
			fmt.Println("changed:", stats)
			return nil
		},
		OnSyncComplete: func(_ context.Context, _ watch.Reader, count int) error {
			fmt.Println("synced:", count)
			close(synced)
			return nil
		},
	}, client)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go bulk.Start(ctx) //nolint:errcheck // it was not stopped before
	<-synced
	for _, ingress := range bulk.Store().Get("shop") {
		fmt.Println("found:", ingress.GetName())
	}
	// Output:
	// changed: +1 ~0 -0
	// synced: 1
	// found: web
}

func ExampleSingle() {
	client := fakeClient(object("shop/web", class("haproxy"))) // dynamic.NewForConfig in real life
	changes := kubewatch.NewFake()
	client.PrependWatchReactor("ingresses", clienttesting.DefaultWatchReactor(changes, nil))
	loaded := make(chan struct{})
	load := func(_ context.Context, object *unstructured.Unstructured) error {
		defer func() { loaded <- struct{}{} }()
		if object == nil {
			fmt.Println("not there: the defaults hold")
			return nil
		}
		class, _, err := unstructured.NestedString(object.Object, "spec", "ingressClassName")
		fmt.Println("class:", class)
		return err
	}
	single, err := watch.NewSingle(watch.SingleConfig{
		GVR:       schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
		Namespace: "shop", Name: "web",
		OnSyncComplete: load, OnChange: load,
	}, client)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go single.Start(ctx) //nolint:errcheck // it was not stopped before
	<-loaded
	fmt.Println("synced:", single.IsSynced())
	changes.Modify(object("shop/web", class("nginx"), generation(2)))
	<-loaded
	changes.Delete(object("shop/web", class("nginx"), generation(2)))
	<-loaded
	// Output:
	// class: haproxy
	// synced: true
	// class: nginx
	// not there: the defaults hold
}

func ExampleDebouncer() {
	called := make(chan watch.ChangeStats)
	debouncer, err := watch.NewDebouncer(watch.DebouncerConfig{
		Interval: time.Hour,
		Callback: func(_ context.Context, stats watch.ChangeStats) error {
			called <- stats
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go debouncer.Run(ctx)
	debouncer.Record(watch.ChangeStats{Created: 1})
	fmt.Println("at once:", <-called)
	debouncer.Record(watch.ChangeStats{Modified: 1})
	debouncer.Record(watch.ChangeStats{Modified: 1, Deleted: 1})
	debouncer.Flush()
	fmt.Println("without waiting for an hour:", <-called)
	// Output:
	// at once: +1 ~0 -0
	// without waiting for an hour: +0 ~2 -1
}

func ExampleChangeStats() {
	stats := watch.ChangeStats{Created: 2, Deleted: 1}
	fmt.Println(stats, "makes", stats.Total())
	fmt.Println("empty:", stats.Empty(), watch.ChangeStats{IsInitialSync: true}.Empty())
	// Output:
	// +2 ~0 -1 makes 3
	// empty: false true
}

func ExampleIndexer() {
	indexer, err := watch.NewIndexer(watch.IndexerConfig{
		IndexBy:      []string{"metadata.namespace", "spec.rules[*].host"},
		IgnoreFields: []string{"metadata.managedFields", "status"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := []any{map[string]any{"host": "a.example"}, map[string]any{"host": "b.example"}}
	keys := indexer.Process(object("shop/web", with(rules, "spec", "rules"), with("Ready", "status", "phase")))
	fmt.Printf("%q\n", keys)
	// Output: [["shop" "a.example"] ["shop" "b.example"]]
}

func ExampleStore() {
	store, err := watch.NewStore(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for name, key := range map[string]string{"web": "haproxy", "blog": "nginx", "wiki": "haproxy"} {
		if _, err := store.Put(object("shop/"+name), watch.Key{key}); err != nil {
			fmt.Println(err)
		}
	}
	store.DeleteObject("shop", "web")
	fmt.Println(names(store.Get("haproxy")), store.Len())
	// Output: [wiki] 2
}

func ExampleSelector() {
	selector, err := watch.NewSelector("spec.ingressClassName=haproxy,metadata.namespace!=kube-system")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(selector.Matches(object("shop/web", class("haproxy"))))
	fmt.Println(selector.Matches(object("kube-system/web", class("haproxy"))))
	// Output:
	// true
	// false
}

func ExampleConfigError() {
	_, err := watch.NewSelector("spec.class=a,spec..name=b")
	fmt.Println(err)
	// Output: FieldSelector "spec.class=a,spec..name=b", character 19: recursive descent is not supported; write the whole path
}
