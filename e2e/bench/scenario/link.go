package scenario

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// links are custom resources that refer to each other: the Deployment names root, which leads over middle and leaf to a
// ConfigMap.
var links = controlplane.CustomResource{Group: "bench.example.com", Kind: "Link", Plural: "links"}

const (
	referent      = "links.bench.example.com/root"
	fromConfigMap = "--config=configmap:pod-reloader/links"
	// chainDebounce is how long pod-reloader lets changes of custom resources gather.
	chainDebounce = 100 * time.Millisecond
)

// linksConfiguration is how the custom resources refer to each other.
const linksConfiguration = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: pod-reloader, name: links}
data:
  config.yaml: |
    apiVersion: pod-reloader.io/v1alpha1
    kind: Configuration
    referents:
    - id: links
      gvr: {group: bench.example.com, version: v1, resource: links}
      refs:
      - {to: links, name: spec.link}
      - {to: configmaps, name: spec.configMap}
`

// applyLinks creates the resource, the permissions on it and the configuration.
func (e *environment) applyLinks(ctx context.Context) error {
	permissions := controlplane.Grant("pod-reloader-links", controlplane.ServiceAccount("pod-reloader", "pod-reloader"),
		`{apiGroups: [bench.example.com], resources: [links], verbs: [get, list, watch]}`)
	return e.cp.Apply(ctx, links.Definition(), permissions, linksConfiguration)
}

// awaitAdopted waits until the Record of a Deployment has a custom resource.
func (e *environment) awaitAdopted(ctx context.Context, name, referent string) error {
	known := regexp.MustCompile(regexp.QuoteMeta(referent) + `[=~][0-9a-f]`)
	return await(ctx, "the adoption of "+referent, 50*time.Millisecond, time.Minute, func(ctx context.Context) error {
		object := &appsv1.Deployment{}
		if err := e.Get(ctx, client.ObjectKey{Namespace: e.name, Name: name}, object); err != nil {
			return err
		}
		for _, value := range object.Annotations {
			if known.MatchString(value) {
				return nil
			}
		}
		return errors.New("it is in no annotation yet")
	})
}

func link() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: links.Group, Version: "v1", Kind: links.Kind})
	return object
}

// createLink creates a custom resource in the scenario's namespace.
func (e *environment) createLink(ctx context.Context, name string, spec map[string]any) error {
	object := link()
	object.SetNamespace(e.name)
	object.SetName(name)
	object.Object["spec"] = spec
	if err := e.Create(ctx, object); err != nil {
		return fmt.Errorf("create Link %s: %w", name, err)
	}
	return nil
}
