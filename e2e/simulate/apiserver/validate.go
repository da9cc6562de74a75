package apiserver

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Of the validation of Kubernetes this has what tests of a controller meet: metadata, the size of annotations and data,
// selectors, what is immutable, the texts of Events, and that pod templates have containers.

var metadataPath = field.NewPath("metadata")

// validateCreate returns a 422 if an object may not be created.
func validateCreate(k *kind, o object) error {
	errs := apivalidation.ValidateObjectMetaAccessor(metaOf(o), k.Namespaced, apivalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, validateContent(o, nil)...)
	return invalid(k, o, errs)
}

// validateUpdate returns a 422 if an object may not become another.
func validateUpdate(next, old *item) error {
	meta, before := next.meta(), old.meta()
	var errs field.ErrorList
	if meta.UID != before.UID {
		errs = apivalidation.ValidateImmutableField(meta.UID, before.UID, metadataPath.Child("uid"))
	}
	if !maps.Equal(meta.Annotations, before.Annotations) {
		errs = append(errs, apivalidation.ValidateAnnotations(meta.Annotations, metadataPath.Child("annotations"))...)
	}
	if !maps.Equal(meta.Labels, before.Labels) || !slices.Equal(meta.Finalizers, before.Finalizers) ||
		len(meta.OwnerReferences) != len(before.OwnerReferences) || !meta.DeletionTimestamp.Equal(before.DeletionTimestamp) {
		errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(meta, before, metadataPath)...)
	}
	if next.spec == nil || next.spec != old.spec {
		errs = append(errs, validateContent(next.typed, old.typed)...)
	}
	return invalid(next.kind, next.typed, errs)
}

func invalid(k *kind, o object, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	gk := k.gvk.GroupKind()
	if k.twin != nil {
		gk.Group = "" // Events are validated as those of the core group
	}
	return apierrors.NewInvalid(gk, metaOf(o).Name, errs)
}

// validateContent validates what is particular to a kind; old is nil for a create.
func validateContent(next, old object) field.ErrorList {
	var errs field.ErrorList
	switch o := next.(type) {
	case *corev1.ConfigMap:
		errs = append(errs, validateConfigMap(o)...)
	case *corev1.Secret:
		errs = append(errs, validateSecret(o, old)...)
	case *appsv1.Deployment, *appsv1.DaemonSet, *appsv1.ReplicaSet, *appsv1.StatefulSet:
		selector := selectorIn(next)
		errs = append(errs, validateSelector(selector, template(next).Labels)...)
		errs = append(errs, validateTemplate(next)...)
		if set, ok := next.(*appsv1.StatefulSet); ok {
			errs = append(errs, validateStatefulSetStrategy(set)...)
			errs = append(errs, validateStatefulSetUpdate(set, old)...)
		} else if old != nil {
			errs = append(errs, apivalidation.ValidateImmutableField(selector, selectorIn(old), field.NewPath("spec", "selector"))...)
		}
	case *batchv1.CronJob:
		errs = append(errs, validateTemplate(next)...)
	case *batchv1.Job:
		errs = append(errs, validateTemplate(next)...)
		errs = append(errs, validateJobUpdate(o, old)...)
	case *corev1.Event:
		errs = append(errs, validateTexts(newEvent(o).(*eventsv1.Event), "reportingComponent")...)
	case *eventsv1.Event:
		errs = append(errs, validateTexts(o, "reportingController")...)
		errs = append(errs, validateEvent(o)...)
	}
	return errs
}

// selectorIn returns the selector of a workload that is not a Job.
func selectorIn(o object) *metav1.LabelSelector {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Spec.Selector
	case *appsv1.DaemonSet:
		return o.Spec.Selector
	case *appsv1.ReplicaSet:
		return o.Spec.Selector
	case *appsv1.StatefulSet:
		return o.Spec.Selector
	}
	return nil
}

// validateTemplate looks at the pod template of a workload.
func validateTemplate(next object) field.ErrorList {
	t := template(next)
	path := field.NewPath("spec", "template")
	if _, ok := next.(*batchv1.CronJob); ok {
		path = field.NewPath("spec", "jobTemplate", "spec", "template")
	}
	errs := apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))
	containers := path.Child("spec", "containers")
	if len(t.Spec.Containers) == 0 {
		errs = append(errs, field.Required(containers, ""))
	}
	seen := map[string]bool{}
	for n, c := range t.Spec.Containers {
		if c.Name == "" {
			errs = append(errs, field.Required(containers.Index(n).Child("name"), ""))
		} else if seen[c.Name] {
			errs = append(errs, field.Duplicate(containers.Index(n).Child("name"), c.Name))
		}
		seen[c.Name] = true
		if c.Image == "" {
			errs = append(errs, field.Required(containers.Index(n).Child("image"), ""))
		}
	}
	return append(errs, validateRestart(next, t.Spec.RestartPolicy, path.Child("spec", "restartPolicy"))...)
}

func validateRestart(o object, policy corev1.RestartPolicy, path *field.Path) field.ErrorList {
	switch o.(type) {
	case *batchv1.Job, *batchv1.CronJob:
		if policy == corev1.RestartPolicyAlways {
			return field.ErrorList{field.Required(path, `valid values: "OnFailure", "Never"`)}
		}
		return nil
	}
	if policy != corev1.RestartPolicyAlways {
		return field.ErrorList{field.NotSupported(path, policy, []corev1.RestartPolicy{corev1.RestartPolicyAlways})}
	}
	return nil
}

func validateSelector(s *metav1.LabelSelector, set map[string]string) field.ErrorList {
	var errs field.ErrorList
	if s == nil {
		errs = append(errs, field.Required(field.NewPath("spec", "selector"), ""))
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), s, "invalid label selector")}
	}
	if selector.Empty() || !selector.Matches(labels.Set(set)) {
		return append(errs, field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), set, "`selector` does not match template `labels`"))
	}
	return errs
}

// rollingUpdate is RollingUpdateStatefulSetStrategy without names of JSON, as the API server has it in memory and in its message.
type rollingUpdate struct {
	Partition      *int32
	MaxUnavailable *intstr.IntOrString
}

func validateStatefulSetStrategy(o *appsv1.StatefulSet) field.ErrorList {
	s, path := o.Spec.UpdateStrategy, field.NewPath("spec", "updateStrategy")
	if s.Type == appsv1.OnDeleteStatefulSetStrategyType && s.RollingUpdate != nil {
		only := "only allowed for updateStrategy '" + string(appsv1.RollingUpdateStatefulSetStrategyType) + "'"
		return field.ErrorList{field.Invalid(path.Child("rollingUpdate"), rollingUpdate(*s.RollingUpdate), only)}
	}
	return nil
}

func validateStatefulSetUpdate(next *appsv1.StatefulSet, old object) field.ErrorList {
	before, ok := old.(*appsv1.StatefulSet)
	if !ok {
		return nil
	}
	allowed := next.Spec.DeepCopy()
	allowed.Replicas, allowed.Ordinals, allowed.Template = before.Spec.Replicas, before.Spec.Ordinals, before.Spec.Template
	allowed.UpdateStrategy, allowed.MinReadySeconds = before.Spec.UpdateStrategy, before.Spec.MinReadySeconds
	allowed.RevisionHistoryLimit = before.Spec.RevisionHistoryLimit
	allowed.PersistentVolumeClaimRetentionPolicy = before.Spec.PersistentVolumeClaimRetentionPolicy
	if sameMessage(allowed, &before.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas', 'ordinals', "+
		"'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")}
}

// validateJobUpdate refuses what is immutable. The template of a suspended Job that never started could be changed in part;
// that is left out.
func validateJobUpdate(next *batchv1.Job, old object) field.ErrorList {
	before, ok := old.(*batchv1.Job)
	if !ok {
		return nil
	}
	spec := field.NewPath("spec")
	errs := apivalidation.ValidateImmutableField(next.Spec.Completions, before.Spec.Completions, spec.Child("completions"))
	errs = append(errs, apivalidation.ValidateImmutableField(next.Spec.Selector, before.Spec.Selector, spec.Child("selector"))...)
	if !sameMessage(&next.Spec.Template, &before.Spec.Template) {
		errs = append(errs, field.Invalid(spec.Child("template"), next.Spec.Template, apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}

// largestData is how many bytes the data of a ConfigMap or Secret may have.
const largestData = 1 << 20

// validateConfigMap also rejects a key that is in both data and binaryData.
func validateConfigMap(o *corev1.ConfigMap) field.ErrorList {
	sizes := make(map[string]int, len(o.Data)+len(o.BinaryData))
	for key, value := range o.BinaryData {
		sizes[key] = len(value)
	}
	var twice []string
	for key, value := range o.Data {
		if _, binary := o.BinaryData[key]; binary {
			twice = append(twice, key)
		}
		sizes[key] = len(value)
	}
	data := field.NewPath("data")
	errs := validateData(sizes, data)
	slices.Sort(twice)
	for _, key := range twice {
		errs = append(errs, field.Invalid(data.Key(key), key, "duplicate of key present in binaryData"))
	}
	return errs
}

func validateSecret(o *corev1.Secret, old object) field.ErrorList {
	sizes := make(map[string]int, len(o.Data))
	for key, value := range o.Data {
		sizes[key] = len(value)
	}
	errs := validateData(sizes, field.NewPath("data"))
	if before, ok := old.(*corev1.Secret); ok {
		errs = append(errs, apivalidation.ValidateImmutableField(o.Type, before.Type, field.NewPath("type"))...)
	}
	return errs
}

func validateData(sizes map[string]int, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		total += sizes[key]
		for _, wrong := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(path.Key(key), key, wrong))
		}
	}
	if total > largestData {
		errs = append(errs, field.TooLong(field.NewPath(""), "", largestData))
	}
	return errs
}
