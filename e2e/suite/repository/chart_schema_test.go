package repository

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
)

// kubernetesTypes are the types of Kubernetes that values have: the schema knows their fields, at any depth. Helm itself only warns
// of an unknown field, and a misspelt one can open a NetworkPolicy or a security context.
var kubernetesTypes = []any{
	corev1.Affinity{},
	corev1.EnvFromSource{},
	corev1.EnvVar{},
	corev1.Lifecycle{},
	corev1.PodDNSConfig{},
	corev1.PodSecurityContext{},
	corev1.ResourceRequirements{},
	corev1.SecurityContext{},
	corev1.Toleration{},
	corev1.TopologySpreadConstraint{},
	corev1.Volume{},
	corev1.VolumeMount{},
	networkingv1.NetworkPolicyEgressRule{},
	networkingv1.NetworkPolicyPeer{},
}

// definitions are the schemas of types, by their names.
type definitions map[string]schema

func kubernetesDefinitions() definitions {
	d := definitions{}
	for _, value := range kubernetesTypes {
		d.of(reflect.TypeOf(value))
	}
	// An empty peer selects nothing.
	d["NetworkPolicyPeer"]["minProperties"] = 1
	return d
}

// of returns the schema of a type. A struct is a definition of its own.
func (d definitions) of(kind reflect.Type) schema {
	switch kind {
	case reflect.TypeFor[resource.Quantity]():
		return schema{"type": []any{"string", "number"}, "pattern": `^[+-]?[0-9.]+([eEinumkKMGTP]*[-+]?[0-9]*)$`}
	case reflect.TypeFor[intstr.IntOrString]():
		return schema{"type": []any{"integer", "string"}}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[[]byte]():
		return schema{"type": "string"}
	case reflect.TypeFor[metav1.FieldsV1]():
		return schema{"type": "object"}
	}
	switch kind.Kind() {
	case reflect.Pointer:
		return d.of(kind.Elem())
	case reflect.Slice:
		return schema{"type": "array", "items": d.of(kind.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": d.of(kind.Elem())}
	case reflect.Struct:
		return d.object(kind)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.String:
		return schema{"type": "string"}
	default:
		return schema{"type": "integer"}
	}
}

func (d definitions) object(kind reflect.Type) schema {
	if _, known := d[kind.Name()]; !known {
		properties := schema{}
		d[kind.Name()] = schema{"type": "object", "additionalProperties": false, "properties": properties}
		if required := d.fields(kind, properties); len(required) > 0 {
			d[kind.Name()]["required"] = required
		}
	}
	return schema{"$ref": "#/definitions/" + kind.Name()}
}

// fields adds those of a struct, and of the structs that are inlined in it, and returns the required ones.
func (d definitions) fields(kind reflect.Type, properties schema) []any {
	var required []any
	for i := range kind.NumField() {
		name, rest, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		if name == "" {
			required = append(required, d.fields(kind.Field(i).Type, properties)...)
			continue
		}
		properties[name] = d.of(kind.Field(i).Type)
		if !strings.Contains(rest, "omit") {
			required = append(required, name)
		}
	}
	return required
}

// The schema knows the fields that the program knows in a Configuration: the program reports an unknown one when it starts, the
// schema when the chart is installed.
func TestChartKnowsTheFieldsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	var root schema
	require.NoError(t, json.Unmarshal([]byte(read(t, schemaFile)), &root))
	tests := map[string]struct {
		item    string
		path    []string
		besides []string
	}{
		"Kind":      {item: "workloadKinds: [{unknown: 1}]", path: []string{"workloadKinds", "items"}, besides: []string{"resource"}},
		"Referent":  {item: "referents: [{unknown: 1}]", path: []string{"referents", "items"}},
		"GVR":       {item: "referents: [{gvr: {unknown: 1}}]", path: []string{"referents", "items", "gvr"}},
		"Ready":     {item: "referents: [{ready: {unknown: 1}}]", path: []string{"referents", "items", "ready"}},
		"Condition": {item: "referents: [{ready: {conditions: [{unknown: 1}]}}]", path: []string{"referents", "items", "ready", "conditions", "items"}},
		"Ref":       {item: "referents: [{refs: [{unknown: 1}]}]", path: []string{"referents", "items", "refs", "items"}},
		"Referrer":  {item: "referents: [{referrers: [{unknown: 1}]}]", path: []string{"referents", "items", "referrers", "items"}},
		"Workloads": {item: "referents: [{workloads: {unknown: 1}}]", path: []string{"referents", "items", "workloads"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := configuration.Parse([]byte("apiVersion: pod-reloader.io/v1alpha1\nkind: Configuration\n" + test.item))
			_, known, found := strings.Cut(fmt.Sprint(err), "this field is unknown; known are ")
			require.True(t, found, err)
			known, _, _ = strings.Cut(known, ";")
			node := root
			for _, field := range test.path {
				if field != "items" {
					node, _ = node["properties"].(schema)
				}
				node, _ = node[field].(schema)
			}
			properties, _ := node["properties"].(schema)
			assert.ElementsMatch(t, append(strings.Split(known, ", "), test.besides...), slices.Collect(maps.Keys(properties)))
			assert.Equal(t, false, node["additionalProperties"])
		})
	}
}
