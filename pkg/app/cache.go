package app

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// cacheOptions keep the cache of the manager small: it has namespaces, if they are selected by their labels, and nothing that
// was not asked for by an informer. Workloads are in package workloadstate, config objects in configstate.
func cacheOptions(selection options.Selection) cache.Options {
	shared := true
	o := cache.Options{
		// A Get of a ConfigMap or a Secret by mistake must fail, not fill the memory with payloads.
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            prune,
		// Objects in the cache are only read.
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

// prune is the transform that every object goes through before it is cached: only the labels of a namespace are looked at.
func prune(object any) (any, error) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		o.ManagedFields, o.Annotations = nil, nil
	}
	return object, nil
}

// keep says what is kept of workloads: our annotations and those of the second dialect, and the labels that matter. With a
// structured configuration any label and any owner of a custom resource's group can matter, at once. The begin of a pause and its period
// are kept where that dialect is not read, too: a pause that began while it was read has to end.
func keep(selection options.Selection) workload.Keep {
	prefix, _, _ := strings.Cut(selection.Keys.ConfigHash, "/")
	keys := selection.Stakater.Keys
	structured := !selection.Configuration.IsZero()
	return workload.Keep{
		Owner: func(group string) bool { return structured && strings.Contains(group, ".") },
		Annotation: func(key string) bool {
			return strings.HasPrefix(key, prefix+"/") || selection.HasStakater(key) || key == keys.PausedAt || key == keys.PausePeriod
		},
		Label: func(key string) bool {
			return structured || key == selection.Keys.IgnoredLabel || key == selection.Keys.DisabledLabel || selection.Scope.LooksAt(key)
		},
	}
}
