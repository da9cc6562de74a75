package apiserver

import (
	"math"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setDefaults does what kube-apiserver does to every object that it decodes: it sets defaults, and normalizes what its
// conversion to the internal version does. Both happen before admission, and again after each webhook.
func setDefaults(o object) {
	switch o := o.(type) {
	case *corev1.Secret:
		defaultSecret(o)
	case *corev1.Namespace:
		defaultNamespace(o)
	case *corev1.Pod:
		defaultPod(o)
	case *appsv1.Deployment:
		defaultDeployment(&o.Spec)
	case *appsv1.StatefulSet:
		defaultStatefulSet(&o.Spec)
	case *appsv1.DaemonSet:
		defaultDaemonSet(o)
	case *appsv1.ReplicaSet:
		set(&o.Spec.Replicas, 1)
		defaultPodSpec(&o.Spec.Template.Spec)
	case *batchv1.Job:
		if len(o.Labels) == 0 {
			o.Labels = o.Spec.Template.Labels
		}
		defaultJob(&o.Spec)
	case *batchv1.CronJob:
		defaultCronJob(&o.Spec)
	case *rollout:
		defaultPodSpec(&o.Spec.Template.Spec)
	}
}

// set fills in a pointer that is nil.
func set[T any](at **T, value T) {
	if *at == nil {
		*at = &value
	}
}

// fill fills in a value that is zero.
func fill[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

func defaultSecret(o *corev1.Secret) {
	fill(&o.Type, corev1.SecretTypeOpaque)
	for key, value := range o.StringData {
		if o.Data == nil {
			o.Data = map[string][]byte{}
		}
		o.Data[key] = []byte(value)
	}
	o.StringData = nil
}

func defaultNamespace(o *corev1.Namespace) {
	fill(&o.Status.Phase, corev1.NamespaceActive)
	if o.Name == "" {
		return
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[corev1.LabelMetadataName] = o.Name
}

func defaultDeployment(s *appsv1.DeploymentSpec) {
	set(&s.Replicas, 1)
	fill(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		set(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		set(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		set(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	set(&s.RevisionHistoryLimit, 10)
	set(&s.ProgressDeadlineSeconds, 600)
	defaultPodSpec(&s.Template.Spec)
}

func defaultStatefulSet(s *appsv1.StatefulSetSpec) {
	fill(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		set(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && s.UpdateStrategy.RollingUpdate != nil {
		set(&s.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	set(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	fill(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	fill(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	set(&s.Replicas, 1)
	set(&s.RevisionHistoryLimit, 10)
	defaultPodSpec(&s.Template.Spec)
}

// templateGeneration returns the number that the annotation of a DaemonSet holds; in the internal version it is a field.
func templateGeneration(o *appsv1.DaemonSet) int64 {
	n, err := strconv.ParseInt(o.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func setTemplateGeneration(o *appsv1.DaemonSet, n int64) {
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
}

func defaultDaemonSet(o *appsv1.DaemonSet) {
	setTemplateGeneration(o, templateGeneration(o))
	s := &o.Spec
	fill(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		set(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		set(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		set(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	set(&s.RevisionHistoryLimit, 10)
	defaultPodSpec(&s.Template.Spec)
}

// defaultJob is for Jobs only: the job template of a CronJob gets just the defaults of its pods.
func defaultJob(s *batchv1.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		set(&s.Completions, 1)
	}
	set(&s.Parallelism, 1)
	if s.BackoffLimitPerIndex != nil {
		set(&s.BackoffLimit, math.MaxInt32)
	}
	set(&s.BackoffLimit, 6)
	set(&s.CompletionMode, batchv1.NonIndexedCompletion)
	set(&s.Suspend, false)
	if s.PodFailurePolicy != nil {
		set(&s.PodReplacementPolicy, batchv1.Failed)
	}
	set(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	set(&s.ManualSelector, false)
	defaultPodSpec(&s.Template.Spec)
}

func defaultCronJob(s *batchv1.CronJobSpec) {
	fill(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	set(&s.Suspend, false)
	set(&s.SuccessfulJobsHistoryLimit, 3)
	set(&s.FailedJobsHistoryLimit, 1)
	defaultPodSpec(&s.JobTemplate.Spec.Template.Spec)
}
