// Patcher is the floor of the fan-out benchmark: it changes many Deployments, some at a time, and has no reason for it. It writes
// an annotation of the pod template, or with poke one of the workload, for livehook.
//
//	patcher KUBECONFIG ADDRESS NAMESPACE PREFIX COUNT INFLIGHT template|poke
//
// POST /?value=V on the address sets the annotation of PREFIX-0 … PREFIX-(COUNT-1) to V and answers when
// all are written. GET / answers 200 when it is ready.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
)

type patcher struct {
	deployments     metadata.ResourceInterface
	prefix, form    string
	count, inFlight int
}

var patches = map[string]string{
	"template": `{"spec":{"template":{"metadata":{"annotations":{"value":%q}}}}}`,
	"poke":     `{"metadata":{"annotations":{"poke":%q}}}`,
}

func main() {
	if len(os.Args) != 8 || patches[os.Args[7]] == "" {
		log.Fatal("usage: patcher KUBECONFIG ADDRESS NAMESPACE PREFIX COUNT INFLIGHT template|poke")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	p := patcher{deployments: metadata.NewForConfigOrDie(config).Resource(resource).Namespace(os.Args[3]), prefix: os.Args[4], form: patches[os.Args[7]]}
	for n, number := range []*int{&p.count, &p.inFlight} {
		if *number, err = strconv.Atoi(os.Args[5+n]); err != nil {
			log.Fatal(err)
		}
	}
	http.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		if err := p.patch(r.Context(), r.FormValue("value")); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	log.Fatal(http.ListenAndServe(os.Args[2], nil))
}

func (p patcher) patch(ctx context.Context, value string) error {
	patch := fmt.Appendf(nil, p.form, value)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.inFlight)
	for n := range p.count {
		group.Go(func() error {
			_, err := p.deployments.Patch(ctx, p.prefix+"-"+strconv.Itoa(n), types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	return group.Wait()
}
