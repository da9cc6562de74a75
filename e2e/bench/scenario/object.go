package scenario

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// The annotations as the documentation names them.
const (
	prefix        = "pod-reloader.cs.sap.com/"
	configMapsKey = prefix + "configmaps"
	secretsKey    = prefix + "secrets"
	referentsKey  = prefix + "referents"
	ignoredKey    = prefix + "ignored"
)

// deployment describes a Deployment as a user writes it. It has no pods: what is measured ends with its template.
type deployment struct {
	name                string
	configMaps, secrets []string
	// referent is a custom resource that it names; empty means none.
	referent string
	// indifferent is one that reads its configuration and does not ask to be restarted; its writes do not come near
	// pod-reloader's webhook.
	indifferent bool
	labels      map[string]string
	// annotations are those that it has instead of lists in SAP's; nil means none.
	annotations map[string]string
}

func (d deployment) object(namespace string) *appsv1.Deployment {
	var sources []corev1.EnvFromSource
	for _, name := range d.configMaps {
		reference := corev1.LocalObjectReference{Name: name}
		sources = append(sources, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference}})
	}
	for _, name := range d.secrets {
		reference := corev1.LocalObjectReference{Name: name}
		sources = append(sources, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference}})
	}
	annotations := map[string]string{}
	if !d.indifferent && len(d.configMaps) > 0 {
		annotations[configMapsKey] = strings.Join(d.configMaps, ",")
	}
	if !d.indifferent && len(d.secrets) > 0 {
		annotations[secretsKey] = strings.Join(d.secrets, ",")
	}
	if d.annotations != nil {
		annotations = d.annotations
	}
	if d.referent != "" {
		annotations[referentsKey] = d.referent
	}
	own := maps.Clone(d.labels)
	if d.indifferent {
		own = map[string]string{ignoredKey: "true"}
		maps.Copy(own, d.labels)
	}
	none, labels := int32(0), map[string]string{"app": d.name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.name, Annotations: annotations, Labels: own},
		Spec: appsv1.DeploymentSpec{
			Replicas: &none,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "main", Image: "example.com/app:1", EnvFrom: sources},
				}},
			},
		},
	}
}

// createNamespace creates a namespace without labels.
func (e *environment) createNamespace(ctx context.Context, name string) error {
	if err := e.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// deploy creates a Deployment in the scenario's namespace and returns its name for the watcher.
func (e *environment) deploy(ctx context.Context, d deployment) (observe.Workload, error) {
	if err := e.Create(ctx, d.object(e.name)); err != nil {
		return observe.Workload{}, fmt.Errorf("create Deployment %s: %w", d.name, err)
	}
	return observe.Deployment(e.name, d.name), nil
}

// deployWithConfig creates a Deployment and the ConfigMaps and Secrets that it reads.
func (e *environment) deployWithConfig(ctx context.Context, d deployment) (observe.Workload, error) {
	for _, name := range d.configMaps {
		if err := e.createConfigMap(ctx, name); err != nil {
			return observe.Workload{}, err
		}
	}
	for _, name := range d.secrets {
		if err := e.createSecret(ctx, name); err != nil {
			return observe.Workload{}, err
		}
	}
	return e.deploy(ctx, d)
}

// createConfigMap creates a ConfigMap in the scenario's namespace.
func (e *environment) createConfigMap(ctx context.Context, name string) error {
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.name, Name: name},
		Data:       map[string]string{"key": "0", "more": strings.Repeat("x", 200)},
	}
	if err := e.Create(ctx, object); err != nil {
		return fmt.Errorf("create ConfigMap %s: %w", name, err)
	}
	return nil
}

// createSecret is like createConfigMap.
func (e *environment) createSecret(ctx context.Context, name string) error {
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.name, Name: name},
		Data:       map[string][]byte{"key": []byte("0"), "more": []byte(strings.Repeat("x", 200))},
	}
	if err := e.Create(ctx, object); err != nil {
		return fmt.Errorf("create Secret %s: %w", name, err)
	}
	return nil
}

// change gives a ConfigMap other content.
func (e *environment) change(ctx context.Context, configMap string, value int) error {
	return e.merge(ctx, &corev1.ConfigMap{}, configMap, fmt.Sprintf(`{"data":{"key":"%d"}}`, value))
}

// merge applies a JSON merge patch to an object of the scenario's namespace.
func (e *environment) merge(ctx context.Context, object client.Object, name, patch string) error {
	object.SetNamespace(e.name)
	object.SetName(name)
	if err := e.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("patch %T %s: %w", object, name, err)
	}
	return nil
}

// numbered is prefix-n.
func numbered(prefix string, n int) string { return prefix + "-" + strconv.Itoa(n) }
