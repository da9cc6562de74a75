package scene

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/installation"
	"github.com/pod-reloader/pod-reloader/e2e/observe"
)

// Fleet is a kind of workload that nobody compiled in: custom resources that keep whatever they are given.
type Fleet struct {
	// Group of the API. It is the suite's own, since a definition is there for a whole control plane.
	Group string
	// Template is where the pod template is, like "spec.pods.template".
	Template string
	// Forgetful makes the API server drop all metadata of a template at spec.pods.template, as it does for a definition
	// that says no more of it than that it is an object.
	Forgetful bool
}

// fleets is the right to look after them, so that nothing is denied, and then their definition.
const fleets = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pod-reloader-fleets}
rules:
- {apiGroups: [GROUP], resources: [fleets], verbs: [get, list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pod-reloader-fleets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pod-reloader-fleets}
subjects:
- {kind: ServiceAccount, name: pod-reloader, namespace: pod-reloader}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Fleet, plural: fleets, singular: fleet}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: SPEC
`

// What a definition says of the spec.
const (
	keeping   = `{type: object, x-kubernetes-preserve-unknown-fields: true}`
	forgetful = `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {pods: {type: object, ` +
		`properties: {template: {type: object, properties: {` +
		`metadata: {type: object}, spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}`
)

// Kind is its API kind.
func (f Fleet) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: f.Group, Version: "v1", Kind: "Fleet"}
}

// Flag is the kind as --workload-kinds takes it.
func (f Fleet) Flag() string {
	return fmt.Sprintf("--workload-kinds=%s/v1/Fleet=%s", f.Group, f.Template)
}

// Define installs the kind, and gives pod-reloader the right to look after it.
func (f Fleet) Define(t testing.TB, in *installation.Installation) {
	t.Helper()
	spec := keeping
	if f.Forgetful {
		spec = forgetful
	}
	definition := strings.NewReplacer("GROUP", f.Group, "SPEC", spec).Replace(fleets)
	require.NoError(t, in.ControlPlane().Apply(t.Context(), definition))
}

// Scene is a namespace whose observer sees fleets only.
func (f Fleet) Scene(t testing.TB, in *installation.Installation) *Scene {
	t.Helper()
	cp := in.ControlPlane()
	namespace := cp.Namespace(t)
	t.Cleanup(func() { in.Explain(t, namespace) })
	return &Scene{
		TB: t, Client: cp.Client(), Namespace: namespace, Installation: in,
		Watcher: observe.New(t, cp.Admin(), namespace, observe.Kind{
			Name: "Fleet", Resource: f.Kind().GroupVersion().WithResource("fleets"), Template: f.Template,
		}),
	}
}

// Route has the API server send fleets to the webhook.
func (f Fleet) Route(s *Scene) {
	s.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"})
	object.SetName(s.Installation.WebhookConfiguration())
	rule := fmt.Sprintf(`[{"op":"add","path":"/webhooks/0/rules/-","value":{"apiGroups":[%q],"apiVersions":["v1"],`+
		`"resources":["fleets"],"operations":["CREATE","UPDATE"],"scope":"Namespaced"}}]`, f.Group)
	require.NoError(s, s.Patch(s.Context(), object, client.RawPatch(types.JSONPatchType, []byte(rule))))
}

// Serve is Route, and waits until fleets are stamped. The probe is a fleet that asks for reloads; it is not stored.
func (f Fleet) Serve(s *Scene, probe *unstructured.Unstructured) {
	s.Helper()
	f.Route(s)
	require.EventuallyWithT(s, func(c *assert.CollectT) {
		dry := probe.DeepCopy()
		require.NoError(c, s.Create(s.Context(), dry, client.DryRunAll))
		assert.NotEmpty(c, f.TemplateAnnotations(dry)[ConfigHash])
	}, Patience, interval)
}

// TemplateAnnotations are those of the pod template of a fleet.
func (f Fleet) TemplateAnnotations(object *unstructured.Unstructured) map[string]string {
	annotations, _, _ := unstructured.NestedStringMap(object.Object, append(strings.Split(f.Template, "."), "metadata", "annotations")...)
	return annotations
}
