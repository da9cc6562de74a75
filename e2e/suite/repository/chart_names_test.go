package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// namedValues have NAME wherever the chart takes any text. FULL and LETTER are the same, but begin with a letter.
var namedValues = map[string]string{
	"SomeNamespaces": `
namespaces: [NAME]
test: {namespace: NAME, labels: {a: NAME}}
metrics:
  secure: true
  serviceMonitor: {enabled: true, namespace: NAME, labels: {a: NAME}, annotations: {a: NAME}}
  prometheusRule: {enabled: true, namespace: NAME, labels: {a: NAME}, annotations: {a: NAME}}
  dashboard: {enabled: true, namespace: NAME, labels: {a: NAME}, annotations: {a: NAME}}
webhook:
  annotations: {a: NAME}
  clientCA: {configMap: NAME, names: [NAME]}
  certificates: {mode: given, existingSecret: NAME, caBundle: "-----BEGIN CERTIFICATE-----"}
`,
	"AllNamespaces": `
namespacesToIgnore: [NAME]
namespaceSelector: {matchLabels: {a: NAME}, matchExpressions: [{key: NAME, operator: In, values: [NAME]}]}
objectSelector: {matchLabels: {a: NAME}, matchExpressions: [{key: NAME, operator: In, values: [NAME]}]}
metrics:
  podMonitor: {enabled: true, namespace: NAME, labels: {a: NAME}, annotations: {a: NAME}}
webhook:
  certificates: {mode: cert-manager}
`,
	"Issuer": `
webhook:
  certificates: {mode: cert-manager, issuerRef: {name: NAME, kind: NAME, group: NAME}}
`,
	"SelfManaged": ``,
}

// namedByAll are values beside those.
const namedByAll = `
nameOverride: NAME
fullnameOverride: FULL
commonLabels: {a: NAME}
commonAnnotations: {a: NAME}
global: {imagePullSecrets: [NAME]}
image: {repository: NAME, tag: NAME}
imagePullSecrets: [{name: NAME}]
digestKey: {existingSecret: NAME}
serviceAccount: {name: NAME, annotations: {a: NAME}}
priorityClassName: NAME
nodeSelector: {a: NAME}
podLabels: {a: NAME}
podAnnotations: {a: NAME}
env: [{name: NAME, value: NAME}]
args: [NAME]
flowSchema: {enabled: true, priorityLevel: NAME}
guard: {enabled: true}
networkPolicy: {enabled: true}
reloader: {annotations: {auto-annotation: NAME}}
workloadKinds: [{apiVersion: FULL.io/v1, kind: A, template: spec.NAME, resource: LETTER}, {apiVersion: BARE/v1, kind: B, template: spec.template, resource: bs}]
referents: [{id: NAME, gvr: {group: NAME, version: v1, resource: NAME}, publish: true, annotation: NAME, scope: Cluster}]
`

// A name can read as a number or a boolean in YAML. The API server rejects such an object, and decodes no other type for a string.
func TestChartRendersEachNameAsAString(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	for variant, values := range namedValues {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			want := renderNamed(t, helm, values, "plain")
			for _, name := range []string{"1001", "1e3", "no", "null", "2026-01-01"} {
				got := renderNamed(t, helm, values, name)
				require.Len(t, got, len(want))
				for i := range want {
					assertTypes(t, want[i], got[i], fmt.Sprintf("%s: %v", name, want[i].(map[string]any)["kind"]))
				}
			}
		})
	}
}

// renderNamed renders a release with a name, in a namespace with the same name, and returns the objects in the order of Helm.
func renderNamed(t *testing.T, helm, values, name string) []any {
	t.Helper()
	letter := name
	if strings.ContainsAny(name[:1], "0123456789") {
		letter = "plain"
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	text := strings.NewReplacer("spec.NAME", "spec."+letter, "NAME", `"`+name+`"`, "FULL.io", letter+".io", "FULL", `"`+letter+`"`, "LETTER", `"`+letter+`"`, "BARE", name).Replace(values + namedByAll)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	args := slices.DeleteFunc(templateArgs(t, nil), func(arg string) bool { return arg == "--skip-tests" })
	args[slices.Index(args, "template")+1], args[slices.Index(args, "--namespace")+1] = name, name
	out, err := run(t.Context(), helm, append(args, "--values", file)...)
	require.NoError(t, err)
	var all []any
	for document := range strings.SplitSeq(string(out), "\n---\n") {
		var object map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object))
		if len(object) > 0 {
			all = append(all, object)
		}
	}
	return all
}

// assertTypes compares the types of all fields.
func assertTypes(t *testing.T, want, got any, path string) {
	t.Helper()
	if !assert.IsType(t, want, got, path) {
		return
	}
	switch want := want.(type) {
	case map[string]any:
		for key, value := range want {
			assertTypes(t, value, got.(map[string]any)[key], path+"."+key)
		}
	case []any:
		require.Len(t, got, len(want), path)
		for i, value := range want {
			assertTypes(t, value, got.([]any)[i], fmt.Sprintf("%s[%d]", path, i))
		}
	}
}
