package reloader_test

import (
	"errors"
	"maps"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// meeting is a workload of one kind with a ConfigMap and a Secret of its own name.
type meeting struct {
	kind string
	// on are annotations of the workload, onPods those of its pod template, of those of the objects, labels the objects' labels.
	on, onPods, of, labels map[string]string
	// pod returns what the first container and the pod spec have besides; nil reads both objects by envFrom.
	pod func(name string) (container, spec map[string]any)
	// after creates the objects after the workload; otherwise act changes them, by default the ConfigMap.
	after bool
	act   func(b *bare, name string)
	// reloads says whether that reloads the workload.
	reloads bool
}

func byEnvFrom(name string) (container, spec map[string]any) {
	return map[string]any{"envFrom": []any{
		map[string]any{"configMapRef": map[string]any{"name": name}}, map[string]any{"secretRef": map[string]any{"name": name}},
	}}, nil
}

func byKeys(name string) (container, spec map[string]any) {
	ref := map[string]any{"name": name, "key": "key"}
	return map[string]any{"env": []any{
		map[string]any{"name": "A", "valueFrom": map[string]any{"configMapKeyRef": ref}},
		map[string]any{"name": "B", "valueFrom": map[string]any{"secretKeyRef": ref}},
	}}, nil
}

func byProjection(name string) (container, spec map[string]any) {
	source := map[string]any{"name": name}
	return map[string]any{"volumeMounts": []any{map[string]any{"name": "all", "mountPath": "/etc/all"}}},
		map[string]any{"volumes": []any{map[string]any{"name": "all", "projected": map[string]any{"sources": []any{
			map[string]any{"configMap": source}, map[string]any{"secret": source},
		}}}}}
}

func byInitContainer(name string) (container, spec map[string]any) {
	first, _ := byEnvFrom(name)
	first["name"], first["image"] = "init", "busybox:1.36"
	return nil, map[string]any{"initContainers": []any{first}}
}

func byInitVolume(name string) (container, spec map[string]any) {
	mounts := []any{map[string]any{"name": "config", "mountPath": "/config"}, map[string]any{"name": "secrets", "mountPath": "/secrets"}}
	return nil, map[string]any{
		"initContainers": []any{map[string]any{"name": "init", "image": "busybox:1.36", "volumeMounts": mounts}},
		"volumes": []any{
			map[string]any{"name": "config", "configMap": map[string]any{"name": name}},
			map[string]any{"name": "secrets", "secret": map[string]any{"secretName": name}},
		},
	}
}

func notAtAll(string) (container, spec map[string]any) { return nil, nil }

func (m meeting) manifest(namespace, name string) *unstructured.Unstructured {
	if m.pod == nil {
		m.pod = byEnvFrom
	}
	container, spec := m.pod(name)
	main := map[string]any{"name": "app", "image": "busybox:1.36"}
	maps.Copy(main, container)
	pods := map[string]any{"containers": []any{main}}
	maps.Copy(pods, spec)
	annotations := map[string]any{}
	for key, value := range m.onPods {
		annotations[key] = value
	}
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": name}, "annotations": annotations}, "spec": pods}
	o := &unstructured.Unstructured{}
	selector := map[string]any{"matchLabels": map[string]any{"app": name}}
	switch m.kind {
	case "CronJob":
		pods["restartPolicy"] = "OnFailure"
		o.Object = map[string]any{"spec": map[string]any{"schedule": "0 0 1 1 *", "jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}}
	case "Job":
		pods["restartPolicy"] = "Never"
		o.Object = map[string]any{"spec": map[string]any{"template": template}}
	case "DeploymentConfig":
		o.Object = map[string]any{"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"app": name}, "template": template}}
	default:
		o.Object = map[string]any{"spec": map[string]any{"selector": selector, "template": template}}
	}
	o.SetGroupVersionKind(fixture.WorkloadKind(m.kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetAnnotations(m.on)
	return o
}

// meet creates everything, waits until all is known, does everything, and looks at what was reloaded.
func (b *bare) meet(all map[string]meeting) {
	b.Helper()
	for name, m := range all {
		if !m.after {
			b.createObjects(name, m)
		}
		require.NoError(b, b.Create(b.Context(), m.manifest(b.namespace, name)))
	}
	for name, m := range all {
		switch {
		case m.after:
			b.createObjects(name, m)
		case m.act != nil:
			m.act(b, name)
		default:
			configMapTo("2")(b, name)
		}
	}
	b.awaitReloads(all)
	// Whatever was done about the rest is done when what comes later is.
	last := map[string]meeting{"last": {kind: "Deployment", on: map[string]string{fixture.ReloaderConfigMaps: "last"}, labels: map[string]string{"reload": "true"}, reloads: true}}
	b.createObjects("last", last["last"])
	require.NoError(b, b.Create(b.Context(), last["last"].manifest(b.namespace, "last")))
	configMapTo("2")(b, "last")
	b.awaitReloads(last)
	for name, m := range all {
		switch {
		case !m.reloads:
			assert.Empty(b, b.wrote(m.kind, name), "%s is not reloaded", name)
			b.changes(m.kind, name, 0, 0)
		case m.after:
			b.changes(m.kind, name, 1, 2) // the creations of its two objects may be reloads of their own
		default:
			b.changes(m.kind, name, 1, 1)
		}
	}
}

func (b *bare) awaitReloads(all map[string]meeting) {
	b.Helper()
	for name, m := range all {
		b.await("the reload of "+m.kind+" "+name, func() error {
			if m.reloads && len(b.wrote(m.kind, name)) == 0 {
				return errors.New("it is not reloaded")
			}
			return nil
		})
	}
}

// each returns meetings for each of the kinds, with names that begin with it.
func each(all map[string]meeting) map[string]meeting {
	every := map[string]meeting{}
	for _, kind := range []string{"Deployment", "DaemonSet", "StatefulSet"} {
		for name, m := range all {
			m.kind = kind
			name = strings.ToLower(kind) + "-" + name
			m.on, m.onPods = named(m.on, name), named(m.onPods, name)
			every[name] = m
		}
	}
	return every
}

// named puts a name in the place of NAME.
func named(annotations map[string]string, name string) map[string]string {
	with := map[string]string{}
	for key, value := range annotations {
		with[key] = strings.ReplaceAll(value, "NAME", name)
	}
	return with
}
