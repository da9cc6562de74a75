// Bulk is what the watch-sync benchmark measures: a program that has every object of a resource in a watch.Bulk, indexed
// by namespace and name.
//
//	bulk [-ignore FIELD,FIELD] [-cpuprofile FILE] KUBECONFIG GROUP/VERSION/RESOURCE
//
// It is measured from outside; see package subject for when it does what.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pod-reloader/pod-reloader/e2e/bench/subject"
	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func main() {
	ignore := flag.String("ignore", "", "the fields that are not kept, comma-separated")
	profile := flag.String("cpuprofile", "", "a file for the use of the processors during the sync")
	flag.Parse()
	if flag.NArg() != 2 || strings.Count(flag.Arg(1), "/") != 2 {
		log.Fatal("usage: bulk [-ignore FIELD,FIELD] [-cpuprofile FILE] KUBECONFIG GROUP/VERSION/RESOURCE")
	}
	part := strings.Split(flag.Arg(1), "/")
	config := watch.Config{
		GVR:     schema.GroupVersionResource{Group: part[0], Version: part[1], Resource: part[2]},
		IndexBy: []string{"metadata.namespace", "metadata.name"},
	}
	if *ignore != "" {
		config.IgnoreFields = strings.Split(*ignore, ",")
	}
	client, err := connect(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	s := subject.Subject{
		Fill:    func(ctx context.Context) (any, int, error) { return fill(ctx, client, config) },
		Profile: *profile,
	}
	if err := s.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func connect(kubeconfig string) (dynamic.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return dynamic.NewForConfig(config)
}

func fill(ctx context.Context, client dynamic.Interface, config watch.Config) (any, int, error) {
	bulk, err := watch.NewBulk(config, client)
	if err != nil {
		return nil, 0, err
	}
	go func() {
		if err := bulk.Start(ctx); err != nil {
			log.Fatal(err)
		}
	}()
	count, err := bulk.WaitForSync(ctx)
	return bulk, count, err
}
