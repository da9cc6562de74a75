// Bareloop is the floor of the latency benchmark: the least that restarts a workload when a ConfigMap changes, which is a
// watch of metadata, one read and one PATCH: of the pod template, or with poke of the workload, for livehook. It checks
// nothing, remembers nothing, explains nothing.
//
//	bareloop KUBECONFIG NAMESPACE CONFIGMAP DEPLOYMENT template|poke
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

type loop struct {
	objects                                 kubernetes.Interface
	metadata                                metadata.Interface
	namespace, configMap, deployment, patch string
}

var patches = map[string]string{
	"template": `{"spec":{"template":{"metadata":{"annotations":{"hash":"%x"}}}}}`,
	"poke":     `{"metadata":{"annotations":{"poke":"%x"}}}`,
}

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: bareloop KUBECONFIG NAMESPACE CONFIGMAP DEPLOYMENT template|poke")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	l := loop{
		objects: kubernetes.NewForConfigOrDie(protobuf), metadata: metadata.NewForConfigOrDie(config),
		namespace: os.Args[2], configMap: os.Args[3], deployment: os.Args[4], patch: patches[os.Args[5]],
	}
	log.Fatal(l.run(context.Background()))
}

func (l loop) run(ctx context.Context) error {
	configMaps := l.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(l.namespace)
	present, err := configMaps.Get(ctx, l.configMap, metav1.GetOptions{})
	if err != nil {
		return err
	}
	// Whatever changes before the watch begins comes as an event, too.
	events, err := configMaps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + l.configMap, ResourceVersion: present.ResourceVersion})
	if err != nil {
		return err
	}
	for event := range events.ResultChan() {
		if event.Type == watch.Modified {
			if err := l.restart(ctx); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("the watch of %s ended", l.configMap)
}

func (l loop) restart(ctx context.Context) error {
	configMap, err := l.objects.CoreV1().ConfigMaps(l.namespace).Get(ctx, l.configMap, metav1.GetOptions{})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, l.patch, sha256.Sum256(fmt.Append(nil, configMap.Data)))
	_, err = l.metadata.Resource(deployments).Namespace(l.namespace).Patch(ctx, l.deployment, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
