package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// seenByReloader returns the objects for which Reloader finds a container (getVolumeMountName, getContainerWithVolumeMount and
// getContainerWithEnvReference in internal/pkg/handler/upgrade.go): in the environment of containers and init containers, and
// in the first volume that names the object, if one of them mounts it.
func seenByReloader(spec corev1.PodSpec) map[reference.Ref]bool {
	seen := map[reference.Ref]bool{}
	mounted := map[string]bool{}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			seeEnvironment(seen, &containers[i])
			for _, mount := range containers[i].VolumeMounts {
				mounted[mount.Name] = true
			}
		}
	}
	first := map[reference.Ref]bool{}
	for i := range spec.Volumes {
		for _, ref := range inVolume(&spec.Volumes[i]) {
			if !first[ref] && mounted[spec.Volumes[i].Name] {
				seen[ref] = true
			}
			first[ref] = true
		}
	}
	return seen
}

func seeEnvironment(seen map[reference.Ref]bool, container *corev1.Container) {
	see := func(kind reference.Kind, name string) { seen[reference.Ref{Kind: kind, Name: name}] = true }
	for _, variable := range container.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.ConfigMapKeyRef != nil {
			see(reference.ConfigMap, variable.ValueFrom.ConfigMapKeyRef.Name)
		}
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			see(reference.Secret, variable.ValueFrom.SecretKeyRef.Name)
		}
	}
	for _, source := range container.EnvFrom {
		if source.ConfigMapRef != nil {
			see(reference.ConfigMap, source.ConfigMapRef.Name)
		}
		if source.SecretRef != nil {
			see(reference.Secret, source.SecretRef.Name)
		}
	}
}

// inVolume returns the objects that a volume names, of the types that Reloader knows.
func inVolume(volume *corev1.Volume) []reference.Ref {
	var refs []reference.Ref
	see := func(kind reference.Kind, name string) { refs = append(refs, reference.Ref{Kind: kind, Name: name}) }
	if volume.ConfigMap != nil {
		see(reference.ConfigMap, volume.ConfigMap.Name)
	}
	if volume.Secret != nil {
		see(reference.Secret, volume.Secret.SecretName)
	}
	if volume.Projected != nil {
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap != nil {
				see(reference.ConfigMap, source.ConfigMap.Name)
			}
			if source.Secret != nil {
				see(reference.Secret, source.Secret.Name)
			}
		}
	}
	if volume.CSI != nil { // of any driver
		if name := volume.CSI.VolumeAttributes["secretProviderClass"]; name != "" {
			see(reference.SecretProviderClass, name)
		}
	}
	return refs
}
