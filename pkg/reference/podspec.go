package reference

import "slices"

// Reference is one config object that a pod spec names.
type Reference struct {
	Ref
	// Optional says that pods start without the object: every use of it is marked optional, or is an image pull
	// secret.
	Optional bool
}

// FromPodSpec returns the config objects that a pod spec names, sorted and each once. The spec is raw, as unstructured objects
// hold it: it is not converted to the type of the API, which takes longer than reading it. It looks at every place in which the
// API knows one: the environment of containers, init containers and ephemeral containers, all volume types with a
// ConfigMap, a Secret or a reference to a Secret, and image pull secrets. A test walks the API's type PodSpec by reflection,
// so that a place that is added to the API cannot be missed. A SecretProviderClass is named by the attributes of a CSI volume.
//
// A name that no object can have is left out: nothing can ever be there. So is a part that does not have the type which the
// API gives it. A nil spec names nothing.
func FromPodSpec(spec map[string]any) []Reference {
	var f finder
	for _, containers := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, container := range objects(spec[containers]) {
			f.environment(container)
		}
	}
	for _, volume := range objects(spec["volumes"]) {
		f.volume(volume)
	}
	for _, pull := range objects(spec["imagePullSecrets"]) {
		f.add(Secret, text(pull["name"]), true)
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

func (f *finder) environment(container map[string]any) {
	for _, variable := range objects(container["env"]) {
		from := object(variable["valueFrom"])
		f.selected(ConfigMap, from["configMapKeyRef"])
		f.selected(Secret, from["secretKeyRef"])
	}
	for _, source := range objects(container["envFrom"]) {
		f.selected(ConfigMap, source["configMapRef"])
		f.selected(Secret, source["secretRef"])
	}
}

// selected adds what a selector names.
func (f *finder) selected(kind Kind, selector any) {
	if s := object(selector); s != nil {
		f.add(kind, text(s["name"]), flag(s["optional"]))
	}
}

// classAttribute is the attribute of a CSI volume that names a SecretProviderClass. The name of the driver does not count, as in
// Reloader: that of the Secrets Store CSI driver is set by a flag, and GKE has a copy with another one.
const classAttribute = "secretProviderClass"

func (f *finder) volume(volume map[string]any) {
	f.selected(ConfigMap, volume["configMap"])
	if secret := object(volume["secret"]); secret != nil {
		f.add(Secret, text(secret["secretName"]), flag(secret["optional"]))
	}
	for _, source := range objects(object(volume["projected"])["sources"]) {
		f.selected(ConfigMap, source["configMap"])
		f.selected(Secret, source["secret"])
	}
	csi := object(volume["csi"])
	// Optional: its content comes from running pods, so none can be waiting for it.
	f.add(SecretProviderClass, text(object(csi["volumeAttributes"])[classAttribute]), true)
	f.credentials(csi["nodePublishSecretRef"])
	for _, driver := range credentialDrivers() {
		f.credentials(object(volume[driver])["secretRef"])
	}
	if file := object(volume["azureFile"]); file != nil {
		f.add(Secret, text(file["secretName"]), false)
	}
}

// credentials adds the Secret that a storage driver takes its credentials from: the mount fails without it, there is no way to
// mark it optional.
func (f *finder) credentials(ref any) {
	if r := object(ref); r != nil {
		f.add(Secret, text(r["name"]), false)
	}
}

// credentialDrivers are the volume types of which secretRef names the credentials.
func credentialDrivers() [7]string {
	return [...]string{"iscsi", "rbd", "cephfs", "cinder", "flexVolume", "scaleIO", "storageos"}
}

// objects returns the elements of a list that are objects.
func objects(list any) []map[string]any {
	elements, _ := list.([]any)
	all := make([]map[string]any, 0, len(elements))
	for _, element := range elements {
		if o := object(element); o != nil {
			all = append(all, o)
		}
	}
	return all
}

func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func flag(value any) bool {
	b, _ := value.(bool)
	return b
}
