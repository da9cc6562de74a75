package reference_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/skim"
)

// exempt has the texts of a pod spec that look as if they named a ConfigMap or a Secret, and why they do not. A field
// that is added to the API and is neither found by FromPodSpec nor listed here fails the test: decide which it is.
func exempt() map[string]string {
	const inside = "a key inside of the object, not an object: an Entry covers the whole object"
	exempt := map[string]string{}
	why := map[string][]string{
		inside: {
			"Volumes[].VolumeSource.Secret.Items[].Key",
			"Volumes[].VolumeSource.ConfigMap.Items[].Key",
			"Volumes[].VolumeSource.Projected.Sources[].Secret.Items[].Key",
			"Volumes[].VolumeSource.Projected.Sources[].ConfigMap.Items[].Key",
		},
		"a path in the container": {
			"Volumes[].VolumeSource.Secret.Items[].Path",
			"Volumes[].VolumeSource.ConfigMap.Items[].Path",
			"Volumes[].VolumeSource.Projected.Sources[].Secret.Items[].Path",
			"Volumes[].VolumeSource.Projected.Sources[].ConfigMap.Items[].Path",
		},
		"a path on the node, for drivers that were configured there": {
			"Volumes[].VolumeSource.CephFS.SecretFile",
		},
		"where a new volume is copied from: a claim, a snapshot or a populator, never read by the pod": {
			"Volumes[].VolumeSource.Ephemeral.VolumeClaimTemplate.Spec.DataSource.APIGroup",
			"Volumes[].VolumeSource.Ephemeral.VolumeClaimTemplate.Spec.DataSource.Kind",
			"Volumes[].VolumeSource.Ephemeral.VolumeClaimTemplate.Spec.DataSource.Name",
			"Volumes[].VolumeSource.Ephemeral.VolumeClaimTemplate.Spec.DataSourceRef.APIGroup",
			"Volumes[].VolumeSource.Ephemeral.VolumeClaimTemplate.Spec.DataSourceRef.Kind",
			"Volumes[].VolumeSource.Ephemeral.VolumeClaimTemplate.Spec.DataSourceRef.Name",
			"Volumes[].VolumeSource.Ephemeral.VolumeClaimTemplate.Spec.DataSourceRef.Namespace",
		},
	}
	for _, container := range []string{"InitContainers[]", "Containers[]", "EphemeralContainers[].EphemeralContainerCommon"} {
		why[inside] = append(why[inside],
			container+".Env[].ValueFrom.ConfigMapKeyRef.Key",
			container+".Env[].ValueFrom.SecretKeyRef.Key",
		)
	}
	for reason, paths := range why {
		for _, path := range paths {
			exempt[path] = reason
		}
	}
	return exempt
}

// TestFromPodSpecIsComplete walks the type PodSpec by reflection, fills one text at a time and asks what is found.
func TestFromPodSpecIsComplete(t *testing.T) {
	t.Parallel()
	const probe = "probe"
	exempt := exempt()
	var found []string
	for path, suspicious := range texts(reflect.TypeFor[corev1.PodSpec]()) {
		var spec corev1.PodSpec
		fill(reflect.ValueOf(&spec).Elem(), strings.Split(path, "."), probe)
		references := reference.FromPodSpec(raw(t, &spec))
		_, isExempt := exempt[path]
		delete(exempt, path)
		if len(references) == 0 {
			assert.True(t, !suspicious || isExempt, "%s looks as if it named a ConfigMap or a Secret, and is not found", path)
			continue
		}
		found = append(found, path)
		assert.Len(t, references, 1, path)
		assert.Equal(t, probe, references[0].Name, path)
		assert.Equal(t, kindOf(path), references[0].Kind, path)
		assert.Equal(t, strings.HasPrefix(path, "ImagePullSecrets"), references[0].Optional,
			"%s: nothing but an image pull secret is optional without being marked", path)
		assert.False(t, isExempt, "%s is found though it is exempt", path)
		assertSkims(t, &spec)
	}
	assert.Empty(t, exempt, "what is exempt must exist in the API")
	slices.Sort(found)
	assert.Len(t, found, 26, "the places in which a pod spec can name a ConfigMap or a Secret:\n%s", strings.Join(found, "\n"))
}

// TestOptionalIsComplete does the same for the field optional: each one counts.
func TestOptionalIsComplete(t *testing.T) {
	t.Parallel()
	marked := 0
	for path := range texts(reflect.TypeFor[corev1.PodSpec]()) {
		var spec corev1.PodSpec
		segments := strings.Split(path, ".")
		fill(reflect.ValueOf(&spec).Elem(), segments, "probe")
		if len(reference.FromPodSpec(raw(t, &spec))) == 0 {
			continue
		}
		holder := descend(reflect.ValueOf(&spec).Elem(), segments[:len(segments)-1])
		if segments[len(segments)-2] == "LocalObjectReference" {
			holder = descend(reflect.ValueOf(&spec).Elem(), segments[:len(segments)-2])
		}
		mark := holder.FieldByName("Optional")
		if !mark.IsValid() {
			continue
		}
		mark.Set(reflect.ValueOf(new(true)))
		marked++
		references := reference.FromPodSpec(raw(t, &spec))
		require.Len(t, references, 1, path)
		assert.True(t, references[0].Optional, path)
		assertSkims(t, &spec)
	}
	assert.Equal(t, 3*4+2+2, marked, "4 in each kind of container, 2 volumes, 2 projections")
}

// assertSkims checks that Shape has what a spec names.
func assertSkims(t *testing.T, spec *corev1.PodSpec) {
	t.Helper()
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	skimmed, err := skim.Decode(text, reference.Shape())
	require.NoError(t, err)
	parts, _ := skimmed.(map[string]any)
	assert.Equal(t, reference.FromPodSpec(raw(t, spec)), reference.FromPodSpec(parts), "%s", text)
}

func kindOf(path string) reference.Kind {
	if strings.Contains(path, "ConfigMap") {
		return reference.ConfigMap
	}
	return reference.Secret
}

// texts returns the path of every text in a type, and whether a name on the way, of a field or of a type, suggests
// that it names another object.
func texts(typ reflect.Type) map[string]bool {
	paths := map[string]bool{}
	var walk func(typ reflect.Type, path string, suspicious bool)
	walk = func(typ reflect.Type, path string, suspicious bool) {
		suspicious = suspicious || suspiciousName(typ.Name())
		switch typ.Kind() {
		case reflect.String:
			paths[path] = suspicious
		case reflect.Pointer:
			walk(typ.Elem(), path, suspicious)
		case reflect.Slice:
			walk(typ.Elem(), path+"[]", suspicious)
		case reflect.Struct:
			for field := range typ.Fields() {
				if field.IsExported() {
					walk(field.Type, strings.TrimPrefix(path+"."+field.Name, "."), suspicious || suspiciousName(field.Name))
				}
			}
		case reflect.Map:
			if suspicious {
				paths[path] = true // a map of names would need a decision as well
			}
		}
	}
	walk(typ, "", false)
	return paths
}

func suspiciousName(name string) bool {
	lower := strings.ToLower(name)
	return strings.Contains(lower, "secret") || strings.Contains(lower, "configmap") || strings.HasSuffix(lower, "objectreference")
}

// fill sets the text at a path, and makes whatever is on the way.
func fill(value reflect.Value, path []string, text string) {
	leaf := descend(value, path)
	if leaf.Kind() == reflect.String {
		leaf.SetString(text)
	}
}

func descend(value reflect.Value, path []string) reflect.Value {
	for _, segment := range path {
		name, isList := strings.CutSuffix(segment, "[]")
		value = indirect(value.FieldByName(name))
		if isList {
			if value.Len() == 0 {
				value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			}
			value = indirect(value.Index(0))
		}
	}
	return value
}

func indirect(value reflect.Value) reflect.Value {
	if value.Kind() != reflect.Pointer {
		return value
	}
	if value.IsNil() {
		value.Set(reflect.New(value.Type().Elem()))
	}
	return value.Elem()
}

// TestTexts checks the walk itself: it must find what FromPodSpec is known to read.
func TestTexts(t *testing.T) {
	t.Parallel()
	paths := texts(reflect.TypeFor[corev1.PodSpec]())
	for _, path := range []string{
		"Containers[].Env[].ValueFrom.SecretKeyRef.LocalObjectReference.Name",
		"EphemeralContainers[].EphemeralContainerCommon.EnvFrom[].ConfigMapRef.LocalObjectReference.Name",
		"Volumes[].VolumeSource.Projected.Sources[].Secret.LocalObjectReference.Name",
		"Volumes[].VolumeSource.CSI.NodePublishSecretRef.Name",
		"ImagePullSecrets[].Name",
	} {
		assert.True(t, paths[path], "%s in %v", path, slices.Sorted(maps.Keys(paths)))
	}
	assert.Contains(t, paths, "ServiceAccountName")
	assert.False(t, paths["ServiceAccountName"], "a service account is not a config object")
}
