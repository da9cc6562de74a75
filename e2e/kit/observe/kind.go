package observe

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of workload that is watched.
type Kind struct {
	// Name is the kind, like "Deployment".
	Name string
	// Resource is where the API serves it.
	Resource schema.GroupVersionResource
	// Template is the path of its pod template, like "spec.template".
	Template string
}

// KindNamed is a built-in kind of workload, or ReplicaSet.
func KindNamed(name string) Kind {
	kind := Kind{
		Name:     name,
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: strings.ToLower(name) + "s"},
		Template: "spec.template",
	}
	switch name {
	case "Job":
		kind.Resource.Group = "batch"
	case "CronJob":
		kind.Resource.Group, kind.Template = "batch", "spec.jobTemplate.spec.template"
	}
	return kind
}

// Builtin are the kinds of Kubernetes that keep a pod template which can change.
func Builtin() []Kind {
	return []Kind{KindNamed("Deployment"), KindNamed("StatefulSet"), KindNamed("DaemonSet"), KindNamed("CronJob")}
}

// replicaSet is a kind that is watched beside the workloads: each is a rollout that a Deployment has begun.
const replicaSet = "ReplicaSet"

// GroupVersionKind is that of the objects.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return k.Resource.GroupVersion().WithKind(k.Name)
}

// TemplatePath has the fields that lead to the pod template.
func (k Kind) TemplatePath() []string { return strings.Split(k.Template, ".") }

// template is the pod template of an object; nil when it has none.
func (k Kind) template(object *unstructured.Unstructured) (map[string]any, error) {
	template, _, err := unstructured.NestedMap(object.Object, k.TemplatePath()...)
	if err != nil {
		return nil, fmt.Errorf("the template of %s %s: %w", k.Name, object.GetName(), err)
	}
	return template, nil
}

// Workload names one workload.
type Workload struct {
	Kind, Namespace, Name string
}

// Deployment names one.
func Deployment(namespace, name string) Workload { return Workload{"Deployment", namespace, name} }

// StatefulSet names one.
func StatefulSet(namespace, name string) Workload { return Workload{"StatefulSet", namespace, name} }

// DaemonSet names one.
func DaemonSet(namespace, name string) Workload { return Workload{"DaemonSet", namespace, name} }

// String is like "Deployment shop/cart".
func (w Workload) String() string { return w.Kind + " " + w.Namespace + "/" + w.Name }
