package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/skim"
)

func TestFromPodSpecOfOtherTypes(t *testing.T) {
	t.Parallel()
	spec := decode(t, `{"containers":"none","initContainers":[1,null,["x"],{"env":{"valueFrom":{}}}],"volumes":[{"secret":{"secretName":7}},
		{"secret":{"secretName":["a"]}},{"configMap":{"name":true,"optional":"true"}},{"secret":{"secretName":"s","optional":null}},
		{"csi":{"driver":7,"volumeAttributes":["x"]}},{"projected":[]},{"rbd":{"secretRef":"x"}}],"imagePullSecrets":[{"name":{"x":1}}]}`)
	assert.Equal(t, []reference.Reference{secret("s", false)}, reference.FromPodSpec(spec),
		"a custom resource may have anything where a pod spec has lists; what has the API's type counts")
}

func TestShapeLeavesOutTheRest(t *testing.T) {
	t.Parallel()
	text := `{"serviceAccountName":"sa","containers":[{"name":"c","image":"i","command":["sh"],"livenessProbe":{"exec":{}},
		"env":[{"name":"A","value":"literal"},{"name":"B","valueFrom":{"secretKeyRef":{"name":"s","key":"k","optional":true}}}],
		"envFrom":[{"prefix":"P_","configMapRef":{"name":"m"}}],"volumeMounts":[{"name":"v","mountPath":"/v"}]}],
		"volumes":[{"name":"v","configMap":{"name":"m","items":[{"key":"a","path":"b"}]}},{"name":"e","emptyDir":{}},
		{"csi":{"driver":"secrets-store.csi.k8s.io","readOnly":true,"volumeAttributes":{"secretProviderClass":"vault","x":"y"}}}]}`
	skimmed, err := skim.Decode([]byte(text), reference.Shape())
	require.NoError(t, err)
	assert.Equal(t, decode(t, `{"containers":[{"env":[{},{"valueFrom":{"secretKeyRef":{"name":"s","optional":true}}}],
		"envFrom":[{"configMapRef":{"name":"m"}}]}],"volumes":[{"configMap":{"name":"m"}},{},
		{"csi":{"volumeAttributes":{"secretProviderClass":"vault"}}}]}`), skimmed,
		"images, commands, literals and probes are what makes workloads large")
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var raw map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &raw))
	return raw
}

// FuzzFromPodSpec: whatever the API's type can be read from has the same references as that type, and as what Shape leaves.
func FuzzFromPodSpec(f *testing.F) {
	f.Add([]byte(`{"containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"s","key":"k","optional":true}}}]}]}`))
	f.Add([]byte(`{"initContainers":[{"envFrom":[{"configMapRef":{"name":"m"}},{"secretRef":{"name":"m","optional":false}}]}]}`))
	f.Add([]byte(`{"volumes":[{"name":"v","projected":{"sources":[{"configMap":{"name":"a"}},{"secret":{"name":"b"}}]}}]}`))
	f.Add([]byte(`{"volumes":[{"csi":{"driver":"d","nodePublishSecretRef":{"name":"a"}}},{"azureFile":{"secretName":"b","shareName":"c"}}]}`))
	f.Add([]byte(`{"volumes":[{"csi":{"driver":"secrets-store.csi.k8s.io","volumeAttributes":{"secretProviderClass":"a","b":"c"}}}]}`))
	f.Add([]byte(`{"imagePullSecrets":[{"name":"a"},null,{}],"containers":null}`))
	f.Add([]byte(`{"containers":{"env":1},"volumes":[[]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var spec map[string]any
		if json.Unmarshal(text, &spec) != nil || spec == nil {
			return
		}
		before := runtime.DeepCopyJSON(spec)
		references := reference.FromPodSpec(spec)
		require.Equal(t, before, spec, "the input stays as it is")
		skimmed, err := skim.Decode(text, reference.Shape())
		require.NoError(t, err)
		parts, _ := skimmed.(map[string]any)
		require.Equal(t, references, reference.FromPodSpec(parts), "%s", text)
		var typed corev1.PodSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &typed) == nil {
			require.Equal(t, references, reference.FromPodSpec(raw(t, &typed)), "%s", text)
		}
	})
}
