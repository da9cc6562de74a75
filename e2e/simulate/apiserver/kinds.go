package apiserver

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// object is a typed API object.
type object interface {
	runtime.Object
	metav1.ObjectMetaAccessor
	message
}

// message is anything with a protobuf form; the encoding is deterministic, so that equal bytes mean equal content.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// metaOf returns the metadata in an object.
func metaOf(o object) *metav1.ObjectMeta {
	meta, _ := o.GetObjectMeta().(*metav1.ObjectMeta)
	return meta
}

// clone returns a deep copy.
func clone[T object](o T) T {
	copied, _ := o.DeepCopyObject().(T)
	return copied
}

// kind is how one resource is served.
type kind struct {
	world.Resource
	gvk schema.GroupVersionKind
	gr  schema.GroupResource
	// empty makes an object without content.
	empty func() object
	// prefix begins the JSON form of every object.
	prefix string
	// spec returns the part whose change raises the generation; nil for kinds without one. These have a status, too.
	spec, status func(object) message
	// guarded kinds must be updated with a resourceVersion.
	guarded bool
	// custom resources are decoded without Go types by kube-apiserver: they know no strategic merge patch. The model keeps no
	// managed fields of them.
	custom bool
	// annotates means that server-side apply of annotations works without managed fields.
	annotates bool
	// putCreates means that PUT creates what is missing.
	putCreates bool
	// twin is the other API group that serves the same objects.
	twin *kind
	// toTwin converts to the twin's type.
	toTwin func(object) object
}

// define makes a kind without special traits.
func define(r world.Resource, empty func() object) *kind {
	gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
	k := &kind{
		Resource: r, gvk: gv.WithKind(r.Kind), gr: schema.GroupResource{Group: r.Group, Resource: r.Plural}, empty: empty,
		prefix: `{"kind":"` + r.Kind + `","apiVersion":"` + r.APIVersion() + `",`,
	}
	// A Lease has no status, and a Namespace no generation.
	if o := empty(); part(o, "Status").IsValid() && r != world.Namespaces {
		k.spec, k.status = messageAt("Spec"), messageAt("Status")
	}
	return k
}

func messageAt(name string) func(object) message {
	return func(o object) message {
		m, _ := part(o, name).Addr().Interface().(message)
		return m
	}
}

// make returns an empty object that names its kind.
func (k *kind) make() object {
	o := k.empty()
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	return o
}

// kinds returns how the resources of package world are served, in the same order.
func kinds() []*kind {
	all := []*kind{}
	for _, r := range world.Resources() {
		k := define(r, constructors[r])
		k.custom = r == world.Rollouts
		k.guarded = r == world.Leases || k.custom
		k.putCreates = r == world.Leases || r == world.Events || r == world.CoreEvents
		all = append(all, k)
	}
	link(all)
	return all
}

// link makes the two APIs of Events see the same objects.
func link(all []*kind) {
	var core, events *kind
	for _, k := range all {
		switch k.Resource {
		case world.CoreEvents:
			core = k
		case world.Events:
			events = k
		}
	}
	core.twin, core.toTwin = events, newEvent
	events.twin, events.toTwin = core, oldEvent
}

var constructors = map[world.Resource]func() object{
	world.ConfigMaps:          func() object { return &corev1.ConfigMap{} },
	world.Secrets:             func() object { return &corev1.Secret{} },
	world.Pods:                func() object { return &corev1.Pod{} },
	world.Namespaces:          func() object { return &corev1.Namespace{} },
	world.CoreEvents:          func() object { return &corev1.Event{} },
	world.Events:              func() object { return &eventsv1.Event{} },
	world.Leases:              func() object { return &coordinationv1.Lease{} },
	world.Deployments:         func() object { return &appsv1.Deployment{} },
	world.StatefulSets:        func() object { return &appsv1.StatefulSet{} },
	world.DaemonSets:          func() object { return &appsv1.DaemonSet{} },
	world.ReplicaSets:         func() object { return &appsv1.ReplicaSet{} },
	world.ControllerRevisions: func() object { return &appsv1.ControllerRevision{} },
	world.CronJobs:            func() object { return &batchv1.CronJob{} },
	world.Jobs:                func() object { return &batchv1.Job{} },
	world.Rollouts:            func() object { return &rollout{} },
}

// template returns the pod template of a workload, or nil.
func template(o object) *corev1.PodTemplateSpec {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template
	case *rollout:
		return &o.Spec.Template
	}
	return nil
}
