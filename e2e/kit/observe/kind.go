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

// Builtin are the kinds of Kubernetes that keep a pod template which can change.
func Builtin() []Kind {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	batch := schema.GroupVersion{Group: "batch", Version: "v1"}
	return []Kind{
		{Name: "Deployment", Resource: apps.WithResource("deployments"), Template: "spec.template"},
		{Name: "StatefulSet", Resource: apps.WithResource("statefulsets"), Template: "spec.template"},
		{Name: "DaemonSet", Resource: apps.WithResource("daemonsets"), Template: "spec.template"},
		{Name: "CronJob", Resource: batch.WithResource("cronjobs"), Template: "spec.jobTemplate.spec.template"},
	}
}

// replicaSets are watched beside the workloads: each is a rollout that a Deployment has begun.
func replicaSets() Kind {
	return Kind{
		Name:     replicaSet,
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"},
		Template: "spec.template",
	}
}

const replicaSet = "ReplicaSet"

// template is the pod template of an object; nil when it has none.
func (k Kind) template(object *unstructured.Unstructured) (map[string]any, error) {
	template, _, err := unstructured.NestedMap(object.Object, strings.Split(k.Template, ".")...)
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
