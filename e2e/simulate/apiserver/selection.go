package apiserver

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// selection is what a list or a watch is about.
type selection struct {
	// namespace is empty for all.
	namespace string
	// labels and fields are nil if everything matches.
	labels labels.Selector
	fields fields.Selector
}

// selectionOf reads the selectors of a request.
func selectionOf(k *kind, namespace, label, field string) (selection, error) {
	sel := selection{namespace: namespace}
	if label != "" {
		parsed, err := labels.Parse(label)
		if err != nil {
			return sel, apierrors.NewBadRequest(err.Error())
		}
		sel.labels = parsed
	}
	if field != "" {
		parsed, err := fields.ParseSelector(field)
		if err != nil {
			return sel, apierrors.NewBadRequest("unable to parse field selector: " + err.Error())
		}
		known := fieldsOf(k.make())
		for _, r := range parsed.Requirements() {
			if _, ok := known[r.Field]; !ok {
				return sel, apierrors.NewBadRequest(unknownField(k, r.Field))
			}
		}
		sel.fields = parsed
	}
	return sel, nil
}

// unknownField says that a selector names no field of the kind. Kinds with fields of their own have words of their own.
func unknownField(k *kind, name string) string {
	switch k.Resource {
	case world.Pods, world.Namespaces, world.Secrets, world.CoreEvents, world.Events:
		return "field label not supported: " + name
	}
	return fmt.Sprintf("%q is not a known field selector: only %q, %q", name, "metadata.name", "metadata.namespace")
}

// single returns the one place that the selection can match, if it names it.
func (s selection) single() (name, bool) {
	if s.fields == nil {
		return name{}, false
	}
	n, ok := s.fields.RequiresExactMatch("metadata.name")
	namespace := s.namespace
	if namespace == "" {
		namespace, _ = s.fields.RequiresExactMatch("metadata.namespace")
	}
	return name{namespace, n}, ok && namespace != ""
}

func (s selection) matches(i *item) bool {
	meta := i.meta()
	return (s.namespace == "" || meta.Namespace == s.namespace) &&
		(s.labels == nil || s.labels.Matches(labels.Set(meta.Labels))) &&
		(s.fields == nil || s.fields.Matches(fieldsOf(i.typed)))
}

// fieldsOf returns the fields that selectors may name. Of those that kube-apiserver knows for Pods and Events it has the
// ones that clients commonly use.
func fieldsOf(o object) fields.Set {
	meta := metaOf(o)
	set := fields.Set{"metadata.name": meta.Name, "metadata.namespace": meta.Namespace}
	switch o := o.(type) {
	case *corev1.Namespace:
		delete(set, "metadata.namespace")
		set["name"] = meta.Name
		set["status.phase"] = string(o.Status.Phase)
	case *corev1.Secret:
		set["type"] = string(o.Type)
	case *corev1.Pod:
		set["spec.nodeName"] = o.Spec.NodeName
		set["spec.restartPolicy"] = string(o.Spec.RestartPolicy)
		set["spec.serviceAccountName"] = o.Spec.ServiceAccountName
		set["status.phase"] = string(o.Status.Phase)
		set["status.podIP"] = o.Status.PodIP
	case *corev1.Event:
		set["reason"], set["type"], set["reportingComponent"] = o.Reason, o.Type, o.ReportingController
		reference(set, "involvedObject.", o.InvolvedObject)
	case *eventsv1.Event:
		set["reason"], set["type"], set["reportingController"] = o.Reason, o.Type, o.ReportingController
		reference(set, "regarding.", o.Regarding)
	}
	return set
}

func reference(set fields.Set, prefix string, r corev1.ObjectReference) {
	set[prefix+"kind"] = r.Kind
	set[prefix+"namespace"] = r.Namespace
	set[prefix+"name"] = r.Name
	set[prefix+"uid"] = string(r.UID)
	set[prefix+"apiVersion"] = r.APIVersion
	set[prefix+"resourceVersion"] = r.ResourceVersion
	set[prefix+"fieldPath"] = r.FieldPath
}

// parseVersion reads a resourceVersion; empty is 0.
func parseVersion(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: resourceVersion: Invalid value: %q: %v", text, err))
	}
	return int64(version), nil
}
