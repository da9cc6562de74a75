package apiserver

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// defaultPod sets what only Pods get, not pod templates.
func defaultPod(o *corev1.Pod) {
	set(&o.Spec.EnableServiceLinks, true)
	defaultPodSpec(&o.Spec)
}

func defaultPodSpec(s *corev1.PodSpec) {
	fill(&s.DNSPolicy, corev1.DNSClusterFirst)
	fill(&s.RestartPolicy, corev1.RestartPolicyAlways)
	set(&s.SecurityContext, corev1.PodSecurityContext{})
	set(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	fill(&s.SchedulerName, corev1.DefaultSchedulerName)
	fill(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for n := range s.InitContainers {
		defaultContainer(&s.InitContainers[n])
	}
	for n := range s.Containers {
		defaultContainer(&s.Containers[n])
	}
	for n := range s.Volumes {
		defaultVolume(&s.Volumes[n].VolumeSource)
	}
}

func defaultContainer(c *corev1.Container) {
	fill(&c.ImagePullPolicy, pullPolicy(c.Image))
	fill(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	fill(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for n := range c.Ports {
		fill(&c.Ports[n].Protocol, corev1.ProtocolTCP)
	}
	for n := range c.Env {
		if from := c.Env[n].ValueFrom; from != nil && from.FieldRef != nil {
			fill(&from.FieldRef.APIVersion, "v1")
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(p)
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

// pullPolicy returns the default for an image: Always where the tag is latest, or there is neither tag nor digest.
func pullPolicy(image string) corev1.PullPolicy {
	image, _, digest := strings.Cut(image, "@")
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if tag == "latest" || (!tagged && !digest) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	fill(&p.TimeoutSeconds, 1)
	fill(&p.PeriodSeconds, 10)
	fill(&p.SuccessThreshold, 1)
	fill(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		set(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(a *corev1.HTTPGetAction) {
	if a != nil {
		fill(&a.Path, "/")
		fill(&a.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultVolume(v *corev1.VolumeSource) {
	switch {
	case v.ConfigMap != nil:
		set(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.Secret != nil:
		set(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		set(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownward(v.DownwardAPI.Items)
	case v.Projected != nil:
		set(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for n := range v.Projected.Sources {
			defaultProjection(&v.Projected.Sources[n])
		}
	case v.HostPath != nil:
		set(&v.HostPath.Type, corev1.HostPathUnset)
	case *v == corev1.VolumeSource{}:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
}

func defaultProjection(p *corev1.VolumeProjection) {
	if p.DownwardAPI != nil {
		defaultDownward(p.DownwardAPI.Items)
	}
	if p.ServiceAccountToken != nil {
		set(&p.ServiceAccountToken.ExpirationSeconds, 3600)
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for n := range items {
		if ref := items[n].FieldRef; ref != nil {
			fill(&ref.APIVersion, "v1")
		}
	}
}
