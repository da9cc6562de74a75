package reference

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Reference is one config object that a pod spec names.
type Reference struct {
	Ref
	// Optional says that pods start without the object: every use of it is marked optional, or is an image pull
	// secret.
	Optional bool
}

// FromPodSpec returns the config objects a pod spec names, sorted and each once. It looks at every place in which the
// API knows one: the environment of containers, init containers and ephemeral containers, all volume types with a
// ConfigMap, a Secret or a reference to a Secret, and image pull secrets. A test walks the type PodSpec by reflection,
// so that a place that is added to the API cannot be missed. A SecretProviderClass is named by the attributes of a volume of
// the Secrets Store CSI driver.
//
// A name that no object can have is left out: nothing can ever be there. A nil spec names nothing.
func FromPodSpec(spec *corev1.PodSpec) []Reference {
	if spec == nil {
		return nil
	}
	var f finder
	for i := range spec.InitContainers {
		f.environment(spec.InitContainers[i].Env, spec.InitContainers[i].EnvFrom)
	}
	for i := range spec.Containers {
		f.environment(spec.Containers[i].Env, spec.Containers[i].EnvFrom)
	}
	for i := range spec.EphemeralContainers {
		f.environment(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
	for i := range spec.Volumes {
		f.volume(&spec.Volumes[i].VolumeSource)
	}
	for i := range spec.ImagePullSecrets {
		f.add(Secret, spec.ImagePullSecrets[i].Name, true)
	}
	return f.unique()
}

// finder gathers uses in the order in which they appear.
type finder struct {
	uses []Reference
}

func (f *finder) add(kind Kind, name string, optional bool) {
	if ValidName(name) != nil {
		return
	}
	f.uses = append(f.uses, Reference{Ref: Ref{Kind: kind, Name: name}, Optional: optional})
}

// unique sorts the uses and merges those of one object; one required use makes it required.
func (f *finder) unique() []Reference {
	slices.SortFunc(f.uses, func(a, b Reference) int { return a.Compare(b.Ref) })
	merged := f.uses[:0]
	for _, use := range f.uses {
		if last := len(merged) - 1; last >= 0 && merged[last].Ref == use.Ref {
			merged[last].Optional = merged[last].Optional && use.Optional
			continue
		}
		merged = append(merged, use)
	}
	return merged
}

func (f *finder) environment(variables []corev1.EnvVar, sources []corev1.EnvFromSource) {
	for i := range variables {
		from := variables[i].ValueFrom
		if from == nil {
			continue
		}
		if from.ConfigMapKeyRef != nil {
			f.add(ConfigMap, from.ConfigMapKeyRef.Name, isTrue(from.ConfigMapKeyRef.Optional))
		}
		if from.SecretKeyRef != nil {
			f.add(Secret, from.SecretKeyRef.Name, isTrue(from.SecretKeyRef.Optional))
		}
	}
	for i := range sources {
		if from := sources[i].ConfigMapRef; from != nil {
			f.add(ConfigMap, from.Name, isTrue(from.Optional))
		}
		if from := sources[i].SecretRef; from != nil {
			f.add(Secret, from.Name, isTrue(from.Optional))
		}
	}
}

// The Secrets Store CSI driver, and the attribute of its volumes that names a SecretProviderClass.
const (
	secretsStoreDriver = "secrets-store.csi.k8s.io"
	classAttribute     = "secretProviderClass"
)

func (f *finder) volume(source *corev1.VolumeSource) {
	if source.ConfigMap != nil {
		f.add(ConfigMap, source.ConfigMap.Name, isTrue(source.ConfigMap.Optional))
	}
	if source.Secret != nil {
		f.add(Secret, source.Secret.SecretName, isTrue(source.Secret.Optional))
	}
	if source.Projected != nil {
		f.projections(source.Projected.Sources)
	}
	if source.CSI != nil && source.CSI.Driver == secretsStoreDriver {
		// Optional: its content comes from running pods, so none can be waiting for it.
		f.add(SecretProviderClass, source.CSI.VolumeAttributes[classAttribute], true)
	}
	if source.AzureFile != nil {
		f.add(Secret, source.AzureFile.SecretName, false)
	}
	for _, ref := range driverSecrets(source) {
		if ref != nil {
			f.add(Secret, ref.Name, false)
		}
	}
}

func (f *finder) projections(sources []corev1.VolumeProjection) {
	for i := range sources {
		if from := sources[i].ConfigMap; from != nil {
			f.add(ConfigMap, from.Name, isTrue(from.Optional))
		}
		if from := sources[i].Secret; from != nil {
			f.add(Secret, from.Name, isTrue(from.Optional))
		}
	}
}

// driverSecrets returns the credentials that storage drivers take from a Secret: the mount fails without them, there
// is no way to mark them optional.
func driverSecrets(source *corev1.VolumeSource) []*corev1.LocalObjectReference {
	var refs []*corev1.LocalObjectReference
	if source.CSI != nil {
		refs = append(refs, source.CSI.NodePublishSecretRef)
	}
	if source.ISCSI != nil {
		refs = append(refs, source.ISCSI.SecretRef)
	}
	if source.RBD != nil {
		refs = append(refs, source.RBD.SecretRef)
	}
	if source.CephFS != nil {
		refs = append(refs, source.CephFS.SecretRef)
	}
	if source.Cinder != nil {
		refs = append(refs, source.Cinder.SecretRef)
	}
	if source.FlexVolume != nil {
		refs = append(refs, source.FlexVolume.SecretRef)
	}
	if source.ScaleIO != nil {
		refs = append(refs, source.ScaleIO.SecretRef)
	}
	if source.StorageOS != nil {
		refs = append(refs, source.StorageOS.SecretRef)
	}
	return refs
}

func isTrue(b *bool) bool {
	return b != nil && *b
}
