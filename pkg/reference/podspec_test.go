package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func configMap(name string, optional bool) reference.Reference {
	return reference.Reference{Ref: reference.Ref{Kind: reference.ConfigMap, Name: name}, Optional: optional}
}

func secret(name string, optional bool) reference.Reference {
	return reference.Reference{Ref: reference.Ref{Kind: reference.Secret, Name: name}, Optional: optional}
}

func configMapKey(name string, optional *bool) corev1.EnvVar {
	return corev1.EnvVar{Name: "V", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "k", Optional: optional,
	}}}
}

func secretVolume(name string, optional *bool) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: optional},
	}}
}

// csiVolume is a volume of a driver with attributes.
func csiVolume(driver string, attributes map[string]string) corev1.Volume {
	return corev1.Volume{Name: "c", VolumeSource: corev1.VolumeSource{
		CSI: &corev1.CSIVolumeSource{Driver: driver, VolumeAttributes: attributes},
	}}
}

func projectedVolume(sources ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: "p", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: sources},
	}}
}

func containerWith(env ...corev1.EnvVar) corev1.Container {
	return corev1.Container{Name: "c", Env: env}
}

// raw returns a spec as unstructured objects hold it.
func raw(t *testing.T, spec *corev1.PodSpec) map[string]any {
	t.Helper()
	if spec == nil {
		return nil
	}
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	require.NoError(t, err)
	return converted
}

func TestFromPodSpec(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	sidecar := containerWith(configMapKey("a", nil))
	sidecar.RestartPolicy = &always
	tests := map[string]struct {
		reason string
		spec   *corev1.PodSpec
		want   []reference.Reference
	}{
		"SecretProviderClass": {
			reason: "A CSI volume names one, whatever the name of its driver; pods start without its statuses.",
			spec: &corev1.PodSpec{Volumes: []corev1.Volume{
				csiVolume("secrets-store.csi.k8s.io", map[string]string{"secretProviderClass": "vault", "other": "x"}),
				csiVolume("secrets-store.csi.k8s.io", nil),
				csiVolume("secrets-store-gke.csi.k8s.io", map[string]string{"secretProviderClass": "gke"}),
				csiVolume("another.csi.k8s.io", map[string]string{"other": "x"}),
			}},
			want: []reference.Reference{
				{Ref: reference.Ref{Kind: reference.SecretProviderClass, Name: "gke"}, Optional: true},
				{Ref: reference.Ref{Kind: reference.SecretProviderClass, Name: "vault"}, Optional: true},
			},
		},
		"nil":   {reason: "A workload without a template names nothing.", spec: nil},
		"empty": {reason: "An empty spec names nothing.", spec: &corev1.PodSpec{}},
		"required": {
			reason: "Without the field an object is required.",
			spec:   &corev1.PodSpec{Containers: []corev1.Container{containerWith(configMapKey("a", nil))}},
			want:   []reference.Reference{configMap("a", false)},
		},
		"plain variable": {
			reason: "A variable with a value of its own names nothing, and hides none behind it.",
			spec: &corev1.PodSpec{Containers: []corev1.Container{{
				Env: append([]corev1.EnvVar{{Name: "PLAIN", Value: "1"}}, containerWith(configMapKey("a", nil)).Env...),
			}}},
			want: []reference.Reference{configMap("a", false)},
		},
		"optional": {
			reason: "A use that is marked optional does not keep pods from starting.",
			spec:   &corev1.PodSpec{Containers: []corev1.Container{containerWith(configMapKey("a", new(true)))}},
			want:   []reference.Reference{configMap("a", true)},
		},
		"marked as not optional": {
			reason: "The field may be there and be false.",
			spec:   &corev1.PodSpec{Containers: []corev1.Container{containerWith(configMapKey("a", new(false)))}},
			want:   []reference.Reference{configMap("a", false)},
		},
		"optional and required": {
			reason: "One required use makes the object required, whichever comes first.",
			spec: &corev1.PodSpec{Containers: []corev1.Container{
				containerWith(configMapKey("a", new(true)), configMapKey("a", nil), configMapKey("b", nil)),
				containerWith(configMapKey("b", new(true)), configMapKey("c", new(true)), configMapKey("c", new(true))),
			}},
			want: []reference.Reference{configMap("a", false), configMap("b", false), configMap("c", true)},
		},
		"one name, two kinds": {
			reason: "A ConfigMap and a Secret may have the same name.",
			spec: &corev1.PodSpec{
				Containers: []corev1.Container{containerWith(configMapKey("a", nil))},
				Volumes:    []corev1.Volume{secretVolume("a", new(true))},
			},
			want: []reference.Reference{configMap("a", false), secret("a", true)},
		},
		"init container and sidecar": {
			reason: "Both start with the pod and read configuration.",
			spec: &corev1.PodSpec{InitContainers: []corev1.Container{
				containerWith(configMapKey("b", nil)), sidecar,
			}},
			want: []reference.Reference{configMap("a", false), configMap("b", false)},
		},
		"image pull secret": {
			reason: "The kubelet starts pods without it.",
			spec:   &corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}},
			want:   []reference.Reference{secret("registry", true)},
		},
		"image pull secret that is mounted too": {
			reason: "The mount needs it.",
			spec: &corev1.PodSpec{
				ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
				Volumes:          []corev1.Volume{secretVolume("registry", nil)},
			},
			want: []reference.Reference{secret("registry", false)},
		},
		"projected": {
			reason: "Each source has its own field; service account tokens and the like name nothing of ours.",
			spec: &corev1.PodSpec{Volumes: []corev1.Volume{projectedVolume(
				corev1.VolumeProjection{Secret: &corev1.SecretProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "b"}, Optional: new(true),
				}},
				corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "a"},
				}},
				corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			)}},
			want: []reference.Reference{configMap("a", false), secret("b", true)},
		},
		"names that cannot exist": {
			reason: "The API server admits them in a pod spec, but nothing can ever be there; what is beside them counts.",
			spec: &corev1.PodSpec{
				Containers: []corev1.Container{containerWith(
					configMapKey("", nil), configMapKey("No_Such", nil), configMapKey("../a", nil), configMapKey("a", nil),
				)},
				ImagePullSecrets: []corev1.LocalObjectReference{{}},
			},
			want: []reference.Reference{configMap("a", false)},
		},
		"variables without a source": {
			reason: "A literal names nothing, whatever it says.",
			spec: &corev1.PodSpec{Containers: []corev1.Container{containerWith(
				corev1.EnvVar{Name: "A", Value: "configmap/a"}, corev1.EnvVar{Name: "B", ValueFrom: &corev1.EnvVarSource{}},
			)}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, reference.FromPodSpec(raw(t, tc.spec)), tc.reason)
		})
	}
}
