// Informer is the floor of the watch-sync benchmark: a bare dynamic shared informer, with a handler that counts. It has
// no index, selects nothing, leaves nothing out, and reports no change. It does without the package dynamicinformer,
// which brings the types of every API along.
//
//	informer KUBECONFIG GROUP/VERSION/RESOURCE
//
// It is measured from outside; see package subject for when it does what.
package main

import (
	"context"
	"log"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pod-reloader/pod-reloader/e2e/bench/subject"
)

func main() {
	if len(os.Args) != 3 || strings.Count(os.Args[2], "/") != 2 {
		log.Fatal("usage: informer KUBECONFIG GROUP/VERSION/RESOURCE")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	part := strings.Split(os.Args[2], "/")
	resource := schema.GroupVersionResource{Group: part[0], Version: part[1], Resource: part[2]}
	s := subject.Subject{Fill: func(ctx context.Context) (any, int, error) { return fill(ctx, client, resource) }}
	if err := s.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func fill(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource) (any, int, error) {
	all := client.Resource(resource)
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, options)
		},
	}, client), &unstructured.Unstructured{}, 0, cache.Indexers{})
	count := 0
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { count++ }})
	if err != nil {
		return nil, 0, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
		return nil, 0, ctx.Err()
	}
	return informer, count, nil
}
