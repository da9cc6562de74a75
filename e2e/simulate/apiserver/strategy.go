package apiserver

import (
	"bytes"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The functions here follow the strategies in pkg/registry of Kubernetes. They run after mutating admission.

// prepareCreate resets what a client cannot set when it creates an object.
func prepareCreate(k *kind, o object) {
	if k.spec != nil {
		metaOf(o).Generation = 1
	}
	resetStatus(o)
	switch o := o.(type) {
	case *corev1.Namespace:
		if len(o.Spec.Finalizers) == 0 {
			o.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
		}
	case *appsv1.DaemonSet:
		setTemplateGeneration(o, max(templateGeneration(o), 1))
	case *batchv1.Job:
		selectJob(o)
	}
}

// resetStatus gives an object the status that it is created with.
func resetStatus(o object) {
	switch o := o.(type) {
	case *corev1.Namespace:
		o.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	case *corev1.Pod:
		o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
	default:
		if status := part(o, "Status"); status.IsValid() {
			status.SetZero()
		}
	}
}

// selectJob gives a Job the selector that is made of its UID.
func selectJob(o *batchv1.Job) {
	if o.Spec.ManualSelector != nil && *o.Spec.ManualSelector {
		return
	}
	if o.Spec.Template.Labels == nil {
		o.Spec.Template.Labels = map[string]string{}
	}
	for _, key := range []string{"job-name", batchv1.JobNameLabel} {
		o.Spec.Template.Labels[key] = o.Name
	}
	for _, key := range []string{"controller-uid", batchv1.ControllerUidLabel} {
		o.Spec.Template.Labels[key] = string(o.UID)
	}
	if o.Spec.Selector == nil {
		o.Spec.Selector = &metav1.LabelSelector{}
	}
	if o.Spec.Selector.MatchLabels == nil {
		o.Spec.Selector.MatchLabels = map[string]string{}
	}
	o.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(o.UID)
}

// prepareUpdate resets what an update of the main resource cannot change, and raises the generation.
func prepareUpdate(k *kind, next, old object) {
	copyStatus(next, old)
	raise(k, next, old)
}

// raise is prepareUpdate for everything but the status.
func raise(k *kind, next, old object) {
	switch o := next.(type) {
	case *corev1.Namespace:
		o.Spec.Finalizers = old.(*corev1.Namespace).Spec.Finalizers
	case *corev1.Secret:
		fill(&o.Type, old.(*corev1.Secret).Type)
	case *appsv1.DaemonSet:
		before := old.(*appsv1.DaemonSet)
		n := templateGeneration(before)
		if !sameMessage(&o.Spec.Template, &before.Spec.Template) {
			n++
		}
		setTemplateGeneration(o, n)
	}
	meta, before := metaOf(next), metaOf(old)
	_, annotated := next.(*appsv1.Deployment)
	if k.spec != nil && (!sameMessage(k.spec(next), k.spec(old)) ||
		// Annotations of a Deployment are copied to its ReplicaSets.
		annotated && !maps.Equal(meta.Annotations, before.Annotations)) {
		meta.Generation = before.Generation + 1
	}
}

// sameMessage compares by the protobuf form, for which nil and empty are equal, as semantic equality.
func sameMessage(a, b message) bool { return bytes.Equal(marshal(a), marshal(b)) }

// part is the field Spec or Status of an object; it is not valid where the kind has none.
func part(o object, name string) reflect.Value { return reflect.ValueOf(o).Elem().FieldByName(name) }

func copySpec(next, old object) { copyPart(next, old, "Spec") }

func copyStatus(next, old object) { copyPart(next, old, "Status") }

func copyPart(next, old object, name string) {
	if to := part(next, name); to.IsValid() {
		to.Set(part(old, name))
	}
}

// prepareStatus resets what an update of the status subresource cannot change. Metadata can be changed through it, but for
// the labels of a Deployment.
func prepareStatus(next, old object) {
	copySpec(next, old)
	switch o := next.(type) {
	case *appsv1.Deployment:
		o.Labels = metaOf(old).Labels
	case *appsv1.DaemonSet:
		// The annotation is a field of the spec in the internal version.
		setTemplateGeneration(o, templateGeneration(old.(*appsv1.DaemonSet)))
	case *corev1.Pod:
		o.DeletionTimestamp = nil
		o.OwnerReferences = metaOf(old).OwnerReferences
		fill(&o.Status.QOSClass, old.(*corev1.Pod).Status.QOSClass)
	}
}
