package app

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// stakaterDomain is in every key of the second dialect.
const stakaterDomain = "reloader.stakater.com/"

// cacheOptions keep the caches of workloads small and honest: nothing is cached that was not asked for by an informer,
// and no more of an object than the program reads.
func cacheOptions(selection options.Selection, kinds func() workload.Kinds) cache.Options {
	shared := true
	o := cache.Options{
		// A Get of a ConfigMap or a Secret by mistake must fail, not fill the memory with payloads.
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            prune(selection, kinds),
		// Objects in the caches are only read; package workload never changes one.
		DefaultUnsafeDisableDeepCopy: &shared,
	}
	if len(selection.Scope.Namespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range selection.Scope.Namespaces {
			o.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return o
}

// prune returns the transform that every object goes through before it is cached. A kind is pruned by what is known of it
// at that moment; whoever moves its template has its informer removed first.
func prune(selection options.Selection, kinds func() workload.Kinds) toolscache.TransformFunc {
	prefix, _, _ := strings.Cut(selection.Keys.ConfigHash, "/")
	keep := func(annotation string) bool {
		return strings.HasPrefix(annotation, prefix+"/") || strings.Contains(annotation, stakaterDomain)
	}
	return func(object any) (any, error) {
		switch o := object.(type) {
		case *unstructured.Unstructured:
			if kind, ok := kinds().Get(o.GroupVersionKind()); ok {
				o.Object = workload.Object{Kind: kind, Raw: o.Object}.Prune(keep)
			}
		case *metav1.PartialObjectMetadata:
			o.ManagedFields = nil
			maps.DeleteFunc(o.Annotations, func(key, _ string) bool { return !keep(key) })
		}
		return object, nil
	}
}
