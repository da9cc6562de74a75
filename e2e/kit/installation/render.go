package installation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

const webhookConfiguration = "MutatingWebhookConfiguration"

// Render returns the objects of manifests/ with some of its components, by `kubectl kustomize` on a kustomization as the
// documentation shows it. Nothing is left out or changed. A process asks kubectl once for the same components.
func Render(ctx context.Context, cp *controlplane.ControlPlane, components ...string) ([]*unstructured.Unstructured, error) {
	key := fmt.Sprint(cp.Version(), components)
	text, ok := rendered.Load(key)
	if !ok {
		output, err := render(ctx, cp, components)
		if err != nil {
			return nil, fmt.Errorf("render the manifests: %w", err)
		}
		rendered.Store(key, output)
		text = output
	}
	return controlplane.Decode([]byte(text.(string)))
}

// rendered are the outputs of render, by the version of kubectl and the components.
var rendered sync.Map

func render(ctx context.Context, cp *controlplane.ControlPlane, components []string) (string, error) {
	root, err := toolchain.Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cp.Dir(), "kustomization-")
	if err != nil {
		return "", err
	}
	// Kustomize takes relative paths only, and resolves symbolic links first.
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	manifests, err := filepath.Rel(resolved, filepath.Join(root, "manifests"))
	if err != nil {
		return "", err
	}
	kustomization := map[string]any{"resources": []string{manifests}}
	paths := make([]string, 0, len(components))
	for _, c := range components {
		paths = append(paths, filepath.Join(manifests, "components", c))
	}
	if len(paths) > 0 {
		kustomization["components"] = paths
	}
	content, err := yaml.Marshal(kustomization)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), content, 0o600); err != nil {
		return "", err
	}
	return cp.Kubectl(ctx, "kustomize", dir)
}

// install applies the rendered objects, as far as a control plane without cert-manager and kube-proxy can have them.
func (i *Installation) install(ctx context.Context) error {
	objects, err := Render(ctx, i.cp, i.options.Components...)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return strings.HasPrefix(o.GetAPIVersion(), "cert-manager.io/")
	})
	if err := i.putPrefix(objects); err != nil {
		return err
	}
	if i.deployment, err = findDeployment(objects); err != nil {
		return err
	}
	for _, object := range objects {
		var err error
		switch object.GetKind() {
		case webhookConfiguration:
			err = i.redirect(object)
		case "Deployment":
			err = i.addArguments(object)
		}
		if err != nil {
			return err
		}
	}
	i.objects = objects
	if err := i.createNamespaces(ctx); err != nil {
		return err
	}
	return i.Apply(ctx)
}

// addArguments adds those of the options to the Deployment, as an administrator does: the commands read them there.
func (i *Installation) addArguments(object *unstructured.Unstructured) error {
	deployment := i.deployment.DeepCopy()
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, i.options.Args...)
	changed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&deployment.Spec)
	if err != nil {
		return fmt.Errorf("write the Deployment: %w", err)
	}
	object.Object["spec"] = changed
	return nil
}

// putPrefix puts the prefix of the annotations in the place of the default one, as an administrator who changes it has to.
func (i *Installation) putPrefix(objects []*unstructured.Unstructured) error {
	if i.options.Prefix == defaultPrefix {
		return nil
	}
	for _, object := range objects {
		text, err := object.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if err := object.UnmarshalJSON(bytes.ReplaceAll(text, []byte(defaultPrefix), []byte(i.options.Prefix))); err != nil {
			return fmt.Errorf("decode %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Objects are those of the manifests as they are applied.
func (i *Installation) Objects() []*unstructured.Unstructured {
	copies := make([]*unstructured.Unstructured, 0, len(i.objects))
	for _, o := range i.objects {
		copies = append(copies, o.DeepCopy())
	}
	return copies
}

// Apply applies the objects of the manifests, again if they are there already: as `kubectl apply -k` does at an upgrade.
func (i *Installation) Apply(ctx context.Context) error {
	for _, object := range i.objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if err := i.cp.Apply(ctx, string(content)); err != nil {
			return err
		}
	}
	return nil
}

func findDeployment(objects []*unstructured.Unstructured) (*appsv1.Deployment, error) {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
			return nil, fmt.Errorf("read the manifests' Deployment: %w", err)
		}
		if len(deployment.Spec.Template.Spec.Containers) != 1 {
			return nil, fmt.Errorf("the manifests' Deployment has %d containers, one is expected",
				len(deployment.Spec.Template.Spec.Containers))
		}
		return deployment, nil
	}
	return nil, errors.New("there is no Deployment in the manifests")
}

// longestTimeout is the longest timeout of a webhook that the API server accepts, in seconds.
const longestTimeout = 30

// redirect makes a webhook configuration reach the balancer.
func (i *Installation) redirect(object *unstructured.Unstructured) error {
	config := &admissionv1.MutatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config); err != nil {
		return fmt.Errorf("read the manifests' webhook configuration: %w", err)
	}
	if err := controlplane.RedirectWebhooks(config, i.balancer.Addr(), i.cp.CA()); err != nil {
		return err
	}
	if i.options.Patient {
		for n := range config.Webhooks {
			config.Webhooks[n].TimeoutSeconds = ptr.To[int32](longestTimeout)
		}
	}
	redirected, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return fmt.Errorf("redirect the webhook configuration: %w", err)
	}
	object.Object = redirected
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return nil
}

// createNamespaces creates the namespaces of the objects that the manifests take for granted, and that of the canaries.
func (i *Installation) createNamespaces(ctx context.Context) error {
	names := map[string]bool{i.options.Namespace: true}
	for _, object := range i.objects {
		if object.GetNamespace() != "" {
			names[object.GetNamespace()] = true
		}
	}
	for _, object := range i.objects {
		if object.GetKind() == "Namespace" {
			delete(names, object.GetName())
		}
	}
	for name := range names {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"pod-reloader": "enabled"}},
		}}
		err := i.cp.Client().Create(ctx, namespace)
		if client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// Namespace is that of the installation, where the lease and the digest key are.
func (i *Installation) Namespace() string { return i.deployment.Namespace }

// WebhookConfiguration is the name of the MutatingWebhookConfiguration; empty in direct mode.
func (i *Installation) WebhookConfiguration() string {
	for _, object := range i.objects {
		if object.GetKind() == webhookConfiguration {
			return object.GetName()
		}
	}
	return ""
}
