package kind_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

const stakater = "reloader.stakater.com/"

// configKind is a kind of config object, as the fields of a pod spec and the annotations of Reloader name it.
type configKind struct {
	// ref is the kind in lower case, plural that of the exclude annotations.
	ref, plural string
	// keyRef, source, volume, volumeName and projection are fields of a pod spec.
	keyRef, source, volume, volumeName, projection string
}

var configKinds = []configKind{
	{"configmap", "configmaps", "configMapKeyRef", "configMapRef", "configMap", "name", "configMap"},
	{"secret", "secrets", "secretKeyRef", "secretRef", "secret", "secretName", "secret"},
}

// other is the kind that a typed annotation of this kind does not concern.
func (k configKind) other() configKind {
	if k == configKinds[0] {
		return configKinds[1]
	}
	return configKinds[0]
}

// references has the ways in which a pod spec names an object: each returns the fields beside the container "main" and in it.
var references = map[string]func(k configKind, name string) (pod, container map[string]any){
	"env": func(k configKind, name string) (pod, container map[string]any) {
		from := map[string]any{k.keyRef: map[string]any{"name": name, "key": "key"}}
		return nil, map[string]any{"env": []any{map[string]any{"name": "VALUE", "valueFrom": from}}}
	},
	"envfrom": func(k configKind, name string) (pod, container map[string]any) {
		return nil, map[string]any{"envFrom": []any{map[string]any{k.source: map[string]any{"name": name}}}}
	},
	"volume": func(k configKind, name string) (pod, container map[string]any) {
		return mounted(map[string]any{k.volume: map[string]any{k.volumeName: name}})
	},
	"projected": func(k configKind, name string) (pod, container map[string]any) {
		source := map[string]any{k.projection: map[string]any{"name": name}}
		return mounted(map[string]any{"projected": map[string]any{"sources": []any{source}}})
	},
	"init": func(k configKind, name string) (pod, container map[string]any) {
		return map[string]any{"initContainers": []any{map[string]any{
			"name": "init", "image": "example.com/init:1", "envFrom": []any{map[string]any{k.source: map[string]any{"name": name}}},
		}}}, nil
	},
}

// mounted returns a volume, and its mount.
func mounted(volume map[string]any) (pod, container map[string]any) {
	volume["name"] = "config"
	return map[string]any{"volumes": []any{volume}},
		map[string]any{"volumeMounts": []any{map[string]any{"name": "config", "mountPath": "/config"}}}
}

// setting is what a workload asks for, and what that means for the object that it reads.
type setting struct {
	// object is the one that it reads: plain, match or ignore, by its annotations.
	object string
	// metadata and template are annotations.
	metadata, template map[string]string
	reloads            bool
}

// settings has what a workload asks for, for a kind of config object.
func settings(k configKind) map[string]setting {
	one := func(key, value string) map[string]string { return map[string]string{key: value} }
	reload, typed, exclude := k.ref+"."+stakater+"reload", k.ref+"."+stakater+"auto", k.plural+".exclude."+stakater+"reload"
	return map[string]setting{
		"auto":           {object: "plain", metadata: one(auto, "true"), reloads: true},
		"auto-template":  {object: "plain", template: one(auto, "true"), reloads: true},
		"typed":          {object: "plain", metadata: one(typed, "true"), reloads: true},
		"typed-other":    {object: "plain", metadata: one(k.other().ref+"."+stakater+"auto", "true")},
		"named":          {object: "plain", metadata: one(reload, "other,"+k.ref+"-plain"), reloads: true},
		"named-template": {object: "plain", template: one(reload, k.ref+"-plain"), reloads: true},
		"pattern":        {object: "plain", metadata: one(reload, k.ref+"-p.*"), reloads: true},
		"search":         {object: "match", metadata: one(stakater+"search", "true"), reloads: true},
		"search-plain":   {object: "plain", metadata: one(stakater+"search", "true")},
		"excluded":       {object: "plain", metadata: map[string]string{auto: "true", exclude: k.ref + "-plain"}},
		"auto-false":     {object: "plain", metadata: map[string]string{auto: "false", reload: k.ref + "-plain"}},
		"ignored":        {object: "ignore", metadata: one(auto, "true")},
		"silent":         {object: "plain"},
	}
}

// TestEveryAnnotationKindAndReference has a workload for each annotation, each kind of workload and of config object, and each way to
// refer to one. All objects change, twice: each workload restarts for each change, or never.
func TestEveryAnnotationKindAndReference(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	reloading, staying := map[observe.Workload]string{}, map[observe.Workload]string{}
	for _, k := range configKinds {
		createObjects(s, k)
		for name, set := range settings(k) {
			for reference := range references {
				for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
					w := deploy(s, k, set, kind, reference, strings.Join([]string{name, k.ref, reference}, "-"))
					if set.reloads {
						reloading[w] = k.ref + "/" + k.ref + "-" + set.object
					} else {
						staying[w] = name
					}
				}
			}
		}
	}
	for w, ref := range reloading {
		s.AwaitAdopted(w, ref)
	}
	for n := 1; n <= 2; n++ {
		changeObjects(s, n)
		for w, ref := range reloading {
			s.AwaitChanges(w, n, ref+" has changed")
		}
		s.Settled()
		for w, ref := range reloading {
			s.AssertChanges(w, n, "one change of "+ref+" is one restart")
		}
		for w, name := range staying {
			s.AssertChanges(w, 0, name+": nothing that it asks for has changed")
		}
	}
}

// createObjects creates the objects of a kind: one plain, one with the annotation match, one with ignore.
func createObjects(s *fixture.Fixture, k configKind) {
	s.Helper()
	for name, annotations := range map[string]string{
		"plain": `{}`, "match": `{"` + stakater + `match":"true"}`, "ignore": `{"` + stakater + `ignore":"true"}`,
	} {
		var object client.Object = &corev1.ConfigMap{}
		if k.ref == "secret" {
			object = &corev1.Secret{}
			s.Secret(k.ref+"-"+name, fixture.Data{"key": "0"})
		} else {
			s.ConfigMap(k.ref+"-"+name, fixture.Data{"key": "0"})
		}
		s.Merge(object, k.ref+"-"+name, `{"metadata":{"annotations":`+annotations+`}}`)
	}
}

// changeObjects changes the content of all objects.
func changeObjects(s *fixture.Fixture, n int) {
	s.Helper()
	for _, name := range []string{"plain", "match", "ignore"} {
		s.SetConfigMap("configmap-"+name, "key", fmt.Sprint(n))
		s.SetSecret("secret-"+name, "key", fmt.Sprint(n))
	}
}

// deploy creates a workload without pods that reads an object.
func deploy(s *fixture.Fixture, k configKind, set setting, kind, reference, name string) observe.Workload {
	s.Helper()
	object := s.Manifest(kind, name, fixture.Uses{Annotations: set.metadata})
	pod, container := references[reference](k, k.ref+"-"+set.object)
	for field, value := range pod {
		require.NoError(s, unstructured.SetNestedField(object.Object, value, "spec", "template", "spec", field))
	}
	containers := []any{map[string]any{"name": "main", "image": "example.com/app:1"}}
	for field, value := range container {
		containers[0].(map[string]any)[field] = value //nolint:forcetypeassert // made above
	}
	require.NoError(s, unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers"))
	if len(set.template) > 0 {
		require.NoError(s, unstructured.SetNestedStringMap(object.Object, set.template, "spec", "template", "metadata", "annotations"))
	}
	require.NoError(s, s.Create(s.Context(), object))
	return observe.Workload{Kind: kind, Namespace: s.Namespace, Name: name}
}
