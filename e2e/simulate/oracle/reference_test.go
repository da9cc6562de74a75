package oracle

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestListsAreTrimmedAndWithoutDuplicates(t *testing.T) {
	t.Parallel()
	refs := listed(world.Object{prefix + "configmaps": " b ,a,, b,", prefix + "secrets": "a"}, prefix)
	assert.Equal(t, []ref{{"configmaps", "a"}, {"configmaps", "b"}, {"secrets", "a"}}, refs)
	assert.Equal(t, "configmap/a", refs[0].String())
	assert.Empty(t, listed(world.Object{prefix + "configmaps": " , "}, prefix))
}

func TestNeedsOfPodSpec(t *testing.T) {
	t.Parallel()
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "by-env"}},
		}}}}},
		Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "by-env-from"}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "perhaps"}, Optional: new(true)}},
		}}},
		Volumes: []corev1.Volume{
			{Name: "one", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "by-volume"}}},
			{Name: "two", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "projected"}}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "perhaps"}, Optional: new(true)}},
			}}}},
			{Name: "three", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
				NodePublishSecretRef: &corev1.LocalObjectReference{Name: "driver"},
			}}},
		},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	require.NoError(t, err)
	assert.Equal(t, map[ref]need{
		{"secrets", "by-env"}: required, {"configmaps", "by-env-from"}: required, {"secrets", "by-volume"}: required,
		{"configmaps", "projected"}: required, {"secrets", "driver"}: unsure, {"secrets", "pull"}: unsure,
		{"secrets", "perhaps"}: optional,
	}, needs(object))
}

func TestEqualComparesValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b any
		want bool
	}{
		"numbers of different types": {int64(2), 2.0, true},
		"number as text":             {json.Number("2"), int32(2), true},
		"other numbers":              {2, int64(3), false},
		"number and text":            {2, "2", false},
		"empty and absent":           {world.Object{"a": world.Object{}, "b": nil}, world.Object{"c": []any{}}, true},
		"missing field":              {world.Object{"a": "x"}, world.Object{}, false},
		"lists of other length":      {[]any{"a"}, []any{"a", "b"}, false},
		"lists of other items":       {[]any{"a"}, []any{"b"}, false},
		"false and absent":           {false, nil, false},
	} {
		assert.Equal(t, c.want, equal(c.a, c.b), name)
		assert.Equal(t, c.want, equal(c.b, c.a), name)
	}
}

func TestEventsAreReadFromEitherForm(t *testing.T) {
	t.Parallel()
	about := corev1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "cart"}
	pack := func(typed interface{ Marshal() ([]byte, error) }) []byte {
		raw, err := typed.Marshal()
		require.NoError(t, err)
		packed, err := (&runtime.Unknown{Raw: raw}).Marshal()
		require.NoError(t, err)
		return append([]byte("k8s\x00"), packed...)
	}
	for name, call := range map[string]*world.Call{
		"events.k8s.io": {Key: world.Key{Resource: world.Events}, Body: pack(&eventsv1.Event{Reason: "Reloaded", Regarding: about})},
		"core":          {Key: world.Key{Resource: world.CoreEvents}, Body: pack(&corev1.Event{Reason: "Reloaded", InvolvedObject: about})},
		"JSON":          {Body: []byte(`{"reason":"Reloaded","regarding":{"name":"cart"}}`)},
	} {
		event := eventOf(call)
		assert.Equal(t, "Reloaded", world.Text(event, "reason"), name)
		assert.Equal(t, "cart", world.Text(subjectOf(event), "name"), name)
	}
	assert.Nil(t, eventOf(&world.Call{Body: []byte("k8s\x00nothing")}))
	assert.Nil(t, eventOf(&world.Call{Body: []byte("nothing")}))
}

func TestContentIsDataOnly(t *testing.T) {
	t.Parallel()
	c := newContents()
	data := func(field, value string) world.Object {
		return world.Object{"metadata": world.Object{"labels": world.Object{"v": value}}, field: world.Object{"key": value}}
	}
	one := c.number(data("data", "1"))
	assert.NotEqual(t, absent, c.number(world.Object{}), "an empty object exists")
	assert.Equal(t, one, c.number(world.Object{"data": world.Object{"key": "1"}, "type": "Opaque"}), "nothing else counts")
	assert.NotEqual(t, one, c.number(data("binaryData", "1")), "the field counts")
	assert.NotEqual(t, c.number(world.Object{"data": world.Object{"a": "1;b=2"}}), c.number(world.Object{"data": world.Object{"a": "1", "b": "2"}}))
}

func TestHistoryByVersion(t *testing.T) {
	t.Parallel()
	h := &history{edits: []edit{{3, time.Time{}, 1}, {5, time.Time{}, 2}, {8, time.Time{}, absent}}}
	for version, want := range map[int64]int{1: absent, 3: 1, 4: 1, 5: 2, 7: 2, 8: absent} {
		assert.Equal(t, want, h.at(version), "version %d", version)
	}
	assert.Len(t, h.within(3, 8), 2)
	assert.Empty(t, h.within(5, 7))
	assert.Equal(t, absent, (*history)(nil).at(1), "it never existed")
}
