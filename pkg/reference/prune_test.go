package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestPruneRaw(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		raw    string
		want   string
	}{
		"empty": {reason: "Nothing stays nothing.", raw: `{}`, want: `{}`},
		"references only": {
			reason: "Images, commands, literals and probes are what makes workloads large; none of it is kept.",
			raw: `{"serviceAccountName":"sa","containers":[{"name":"c","image":"i","command":["sh"],"livenessProbe":{"exec":{}},
				"env":[{"name":"A","value":"literal"},{"name":"B","valueFrom":{"secretKeyRef":{"name":"s","key":"k","optional":true}}},
				{"name":"C","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
				"envFrom":[{"prefix":"P_","configMapRef":{"name":"m"}}],"volumeMounts":[{"name":"v","mountPath":"/v"}]}],
				"volumes":[{"name":"v","configMap":{"name":"m","items":[{"key":"a","path":"b"}]}},{"name":"e","emptyDir":{}}]}`,
			want: `{"containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"s","optional":true}}}],
				"envFrom":[{"configMapRef":{"name":"m"}}]}],"volumes":[{"configMap":{"name":"m"}}]}`,
		},
		"volume of a driver": {
			reason: "Of its attributes, one names a SecretProviderClass.",
			raw: `{"volumes":[{"name":"v","csi":{"driver":"secrets-store.csi.k8s.io","readOnly":true,
				"volumeAttributes":{"secretProviderClass":"vault","x":"y"}}}]}`,
			want: `{"volumes":[{"csi":{"driver":"secrets-store.csi.k8s.io","volumeAttributes":{"secretProviderClass":"vault"}}}]}`,
		},
		"wrong types": {
			reason: "A custom resource may have anything where a pod spec has lists; it must not carry it into memory.",
			raw: `{"containers":"none","initContainers":[1,null,["x"],{"env":{"valueFrom":{}}}],"volumes":[{"secret":{"secretName":7}},
				{"secret":{"secretName":["a"]}},{"configMap":{"name":true,"optional":"true"}},{"secret":{"secretName":"s","optional":null}}],"imagePullSecrets":[{"name":{"x":1}}]}`,
			want: `{"volumes":[{"secret":{"secretName":"s"}}]}`,
		},
		"unknown fields": {
			reason: "What this version does not know it cannot see either.",
			raw:    `{"secretsOfTheFuture":[{"secretRef":{"name":"s"}}]}`,
			want:   `{}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, want := decode(t, tc.raw), decode(t, tc.want)
			assert.Equal(t, want, reference.PruneRaw(raw), tc.reason)
			assert.Equal(t, decode(t, tc.raw), raw, "the input stays as it is")
		})
	}
	assert.Equal(t, map[string]any{}, reference.PruneRaw(nil), "a workload without a spec is one that names nothing")
}

func TestPruneRawSharesNothing(t *testing.T) {
	t.Parallel()
	const spec = `{"volumes":[{"projected":{"sources":[{"secret":{"name":"s"}}]}}],"imagePullSecrets":[{"name":"p"}]}`
	raw := decode(t, spec)
	pruned := reference.PruneRaw(raw)
	overwrite(pruned)
	assert.Equal(t, decode(t, spec), raw, "objects in a cache are shared")
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var raw map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &raw))
	return raw
}

// overwrite spoils everything that can be reached.
func overwrite(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			overwrite(inner)
			v[key] = "spoilt"
		}
	case []any:
		for i, inner := range v {
			overwrite(inner)
			v[i] = "spoilt"
		}
	}
}

// FuzzPruneRaw: whatever the API's type can be read from, the pruned copy has the same references.
func FuzzPruneRaw(f *testing.F) {
	f.Add([]byte(`{"containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"s","key":"k","optional":true}}}]}]}`))
	f.Add([]byte(`{"initContainers":[{"envFrom":[{"configMapRef":{"name":"m"}},{"secretRef":{"name":"m","optional":false}}]}]}`))
	f.Add([]byte(`{"volumes":[{"name":"v","projected":{"sources":[{"configMap":{"name":"a"}},{"secret":{"name":"b"}}]}}]}`))
	f.Add([]byte(`{"volumes":[{"csi":{"driver":"d","nodePublishSecretRef":{"name":"a"}}},{"azureFile":{"secretName":"b","shareName":"c"}}]}`))
	f.Add([]byte(`{"volumes":[{"csi":{"driver":"secrets-store.csi.k8s.io","volumeAttributes":{"secretProviderClass":"a","b":"c"}}}]}`))
	f.Add([]byte(`{"imagePullSecrets":[{"name":"a"},null,{}],"containers":null}`))
	f.Add([]byte(`{"containers":{"env":1},"volumes":[[]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var raw map[string]any
		if json.Unmarshal(text, &raw) != nil || raw == nil {
			return
		}
		before := runtime.DeepCopyJSON(raw)
		pruned := reference.PruneRaw(raw)
		require.Equal(t, before, raw, "the input stays as it is")
		require.Equal(t, pruned, reference.PruneRaw(pruned), "pruning again changes nothing")
		var small corev1.PodSpec
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(pruned, &small), "it always has the API's types")
		var whole corev1.PodSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &whole) == nil {
			require.Equal(t, reference.FromPodSpec(&whole), reference.FromPodSpec(&small))
		}
		overwrite(pruned)
		require.Equal(t, before, raw, "nothing is shared")
	})
}
