package controlplane

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// DefinitionNamed is a CustomResourceDefinition without content, to be read, patched or deleted.
func DefinitionNamed(name string) *unstructured.Unstructured {
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(definitionKind)
	definition.SetName(name)
	return definition
}

// AwaitServed waits until the API server serves CustomResourceDefinitions, by their names; none means all that there are. That
// a definition is established is not enough: the API server serves it an instant later. And `kubectl wait` fails at once where
// a definition has no conditions, as it is just after its creation.
func (cp *ControlPlane) AwaitServed(ctx context.Context, definitions ...string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if len(definitions) == 0 {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(definitionKind)
		if err := cp.client.List(ctx, all); err != nil {
			return fmt.Errorf("list the definitions of kinds: %w", err)
		}
		for _, definition := range all.Items {
			definitions = append(definitions, definition.GetName())
		}
	}
	for _, name := range definitions {
		err := await(ctx, name+" to be served", func(ctx context.Context) error { return cp.served(ctx, name) })
		if err != nil {
			return err
		}
	}
	return nil
}

// served returns an error unless objects of each served version of a definition can be listed.
func (cp *ControlPlane) served(ctx context.Context, name string) error {
	definition := DefinitionNamed(name)
	if err := cp.client.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
		return fmt.Errorf("read a definition: %w", err)
	}
	if !established(definition) {
		return errors.New("it is not established")
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["served"] != true {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: fmt.Sprint(version["name"]), Kind: kind + "List"})
		if err := cp.client.List(ctx, list, client.Limit(1)); err != nil {
			return fmt.Errorf("list objects in version %s: %w", version["name"], err)
		}
	}
	return nil
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, _ := c.(map[string]any); condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}
