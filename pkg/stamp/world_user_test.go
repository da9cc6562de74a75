package stamp

import (
	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

// autoKey is the annotation of the test's other dialect: "true" tracks what the pod spec names, for modifications only.
const autoKey = "auto.example.com/reload"

type auto struct{}

func (auto) Parse(src annotation.Source) (annotation.Intent, []annotation.Problem) {
	if src.Workload[autoKey] != "true" {
		return annotation.Intent{}, nil
	}
	intent := annotation.Intent{Asked: true, Tracked: map[reference.Ref]annotation.Trigger{}}
	for _, r := range src.References {
		intent.Tracked[r.Ref] = annotation.Trigger{}
	}
	return intent, nil
}

// every is the trigger of SAP's dialect.
var every = annotation.Trigger{OnCreate: true, OnDelete: true}

// manifest is what a user applies: a Deployment that names configmap/b (required) and secret/a (optional).
func (w *world) manifest(annotations map[string]string) map[string]any {
	onWorkload := map[string]any{}
	for k, v := range annotations {
		onWorkload[k] = v
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "app", "namespace": "test", "annotations": onWorkload},
		"spec": map[string]any{
			"replicas":     float64(1),
			"unknownField": map[string]any{"kept": true},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "app"}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "c", "image": "image:1",
					"envFrom": []any{
						map[string]any{"configMapRef": map[string]any{"name": "b"}},
						map[string]any{"secretRef": map[string]any{"name": "a", "optional": true}},
					},
				}}},
			},
		},
	}
}

// lists returns the annotations of SAP's dialect.
func (w *world) lists(configMaps, secrets string) map[string]string {
	return map[string]string{w.keys.ConfigMaps: configMaps, w.keys.Secrets: secrets}
}

// stripped returns an object without our annotations and without empty maps of annotations.
func (w *world) stripped(raw map[string]any) map[string]any {
	raw = clone(w.t, raw)
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		parent := raw
		for _, field := range path {
			parent, _ = parent[field].(map[string]any)
		}
		annotations, ok := parent["annotations"].(map[string]any)
		if !ok {
			continue
		}
		for _, key := range []string{w.keys.ConfigHash, w.keys.ConfigRestart, w.keys.ConfigRecord, w.keys.LastReload} {
			delete(annotations, key)
		}
		if len(annotations) == 0 {
			delete(parent, "annotations")
		}
	}
	if w.reader.writesFields() {
		template := raw["spec"].(map[string]any)["template"].(map[string]any)
		annotate(raw, strategy.Annotation, "", "spec", "template")
		if metadata := template["metadata"].(map[string]any); len(metadata["annotations"].(map[string]any)) == 0 {
			delete(metadata, "annotations")
		}
		raw["spec"].(map[string]any)["template"] = strategy.Without(template)
	}
	return raw
}

// setManaged sets or removes a managed annotation.
func (w *world) setManaged(raw map[string]any, key Key, value string) {
	for _, s := range managedKeys {
		if s.key != key {
			continue
		}
		if s.template {
			annotate(raw, s.annotation(w.keys), value, "spec", "template")
		} else {
			annotate(raw, s.annotation(w.keys), value)
		}
	}
}

// put replaces the object by a manifest that knows nothing of our annotations.
func (w *world) put() *Rejection { return w.store(w.stripped(w.stored)) }
