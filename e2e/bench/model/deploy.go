package model

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// deploy stores a workload with the configuration of the n-th, and with what reloads have written on it, the last time when its ConfigMap
// had a value.
func (m *Model) deploy(n int, name, value string) error {
	config, secret := named("config", n), named("secret", n)
	listed := config
	uses := []any{
		map[string]any{"configMapRef": map[string]any{"name": config}},
		map[string]any{"secretRef": map[string]any{"name": secret}},
	}
	if m.Shared {
		listed += "," + shared
		uses = append(uses, map[string]any{"configMapRef": map[string]any{"name": shared}})
	}
	hash, text, err := m.stamp(n, value)
	if err != nil {
		return err
	}
	var variables []any
	for i := range 20 {
		variables = append(variables, map[string]any{"name": named("VARIABLE", i), "value": "a literal value " + name})
	}
	return m.store(world.Deployments, m.namespaceOf(n), name, world.Object{
		"metadata": map[string]any{
			"labels": map[string]any{"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm"},
			"annotations": map[string]any{
				prefix + "configmaps": listed, prefix + "secrets": secret, prefix + "config-record": text,
				prefix + "last-reload": lastReload(n, hash), "deployment.kubernetes.io/revision": "3",
			},
		},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": name}, "annotations": map[string]any{prefix + "config-hash": hash}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "main", "image": "example.com/app:1", "env": variables, "envFrom": uses,
				}}},
			},
		},
	})
}

// stamp is the config-hash that a reload has written, and the text of the Record that belongs to it.
func (m *Model) stamp(n int, value string) (hash, text string, err error) {
	key, _ := m.ring.Newest()
	items := m.items(n, value)
	hash, named := record.New("", key.ID, items).ConfigHash()
	text, fits := record.New(hash, key.ID, items).Text(record.MaxSize)
	if !named || !fits {
		return "", "", errors.New("the Record does not fit")
	}
	return hash, text, nil
}

// items are those of a workload that was stamped when its ConfigMap had a value.
func (m *Model) items(n int, value string) map[reference.Ref]record.Item {
	key, _ := m.ring.Newest()
	items := map[reference.Ref]record.Item{}
	add := func(resource world.Resource, ref reference.Ref, content digest.Content) {
		stored, _ := m.server.Get(world.Key{Resource: resource, Namespace: m.namespaceOf(n), Name: ref.Name})
		version := "1"
		if value == unchanged {
			version, _, _ = unstructured.NestedString(stored, "metadata", "resourceVersion")
		}
		items[ref], _ = record.ItemOf(key.ID, digest.StateOf(content, "", version, m.ring))
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: m.namespaceOf(n), Name: name} }
	configMap := func(name, value string) {
		add(world.ConfigMaps, reference.Ref{Kind: reference.ConfigMap, Name: name},
			digest.OfConfigMap(&corev1.ConfigMap{ObjectMeta: meta(name), Data: map[string]string{"key": value}}))
	}
	configMap(named("config", n), value)
	if m.Shared {
		configMap(shared, unchanged)
	}
	secret := named("secret", n)
	add(world.Secrets, reference.Ref{Kind: reference.Secret, Name: secret},
		digest.OfSecret(&corev1.Secret{ObjectMeta: meta(secret), Data: map[string][]byte{"key": []byte(unchanged)}}))
	return items
}

// lastReload is the annotation of a workload that was reloaded many times, the last time a day ago, for a change of its ConfigMap, and
// in every other case of its Secret. It names as many earlier reloads as the annotation keeps.
func lastReload(n int, hash string) string {
	const day = 24 * time.Hour
	last := record.LastReload{
		Time: time.Now().Add(-day), Hash: hash, Generation: 7, Cause: record.CauseConfigChange,
		Changes: []record.Change{{Ref: "configmap/" + named("config", n), Type: record.Modified}},
	}
	if n%2 == 1 {
		last.Changes = append(last.Changes, record.Change{Ref: "secret/" + named("secret", n), Type: record.Modified})
	}
	for i := range 5 {
		earlier := hash[:len(hash)-8] + fmt.Sprintf("%08x", n*5+i)
		last.Before = append(last.Before, record.Past{Time: last.Time.Add(-time.Duration(i+1) * day), Hash: earlier, Cause: record.CauseConfigChange})
	}
	return last.String()
}
