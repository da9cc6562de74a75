package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// fieldOwner is the field manager of what Apply applies.
const fieldOwner = "controlplane"

// newKindTimeout bounds the wait for a kind whose definition was applied just before.
const newKindTimeout = 2 * time.Minute

// Apply applies YAML documents on the server's side as the administrator, in their order, and takes
// over fields of others. It is quicker than kubectl and leaves no last-applied annotation; where
// that matters, use [ControlPlane.KubectlInput] with "apply -f -".
func (cp *ControlPlane) Apply(ctx context.Context, yamls ...string) error {
	for _, documents := range yamls {
		objects, err := Decode([]byte(documents))
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := cp.applyObject(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// Decode reads the objects of YAML documents; empty documents are left out and a List is its items.
func Decode(documents []byte) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(documents)))
	var objects []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read YAML documents: %w", err)
		}
		object, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("decode a YAML document: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if !object.IsList() {
			objects = append(objects, object)
			continue
		}
		err = object.EachListItem(func(item runtime.Object) error {
			objects = append(objects, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("decode a list: %w", err)
		}
	}
}

// decode keeps whole numbers as they are: as floats they would lose digits beyond 2^53.
func decode(document []byte) (*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, json.Unmarshal(text, &object.Object)
}

// applyObject waits for the kind when its definition is so new that the API server does not serve
// it yet.
func (cp *ControlPlane) applyObject(ctx context.Context, object *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, newKindTimeout)
	defer cancel()
	var failure error
	err := await(ctx, "kind "+object.GetKind(), func(ctx context.Context) error {
		failure = cp.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
			client.FieldOwner(fieldOwner), client.ForceOwnership)
		if meta.IsNoMatchError(failure) {
			return failure
		}
		return nil
	})
	if err := errors.Join(err, failure); err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return nil
}
