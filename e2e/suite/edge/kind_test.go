package edge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// fleet is a kind with its pod template at a place of its own, named on the command line of the shared installation.
var fleet = fixture.Fleet{Group: "edge.example.com", Template: "spec.pods.template"}

// defined is a kind whose definition is created again in a test.
var defined = fixture.Fleet{Group: "anew.example.com", Template: "spec.pods.template"}

// newFleet is one as a user's file has it.
func newFleet(s *fixture.Fixture, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"size": int64(3),
		"pods": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": name}},
			"spec": map[string]any{
				"fieldOfTheFuture": map[string]any{"numbers": []any{int64(9007199254740993), 2.5}, "nothing": map[string]any{}},
				"containers": []any{map[string]any{
					"name": "main", "image": "example.com/app:1", "alsoNew": true,
					"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "app"}}},
				}},
			},
		}},
	}}}
	object.SetGroupVersionKind(fleet.Kind())
	object.SetNamespace(s.Namespace)
	object.SetName(name)
	object.SetAnnotations(map[string]string{fixture.ConfigMaps: "app"})
	return object
}

// fleetPods is the pod spec of a fleet.
func fleetPods(object *unstructured.Unstructured) map[string]any {
	podSpec, _, _ := unstructured.NestedMap(object.Object, "spec", "pods", "template", "spec")
	return podSpec
}

// A kind of the command line is not served until its definition is installed: this is logged and retried, and then it is
// reloaded like a Deployment, first without the webhook, then with it.
func TestKindThatIsServedLater(t *testing.T) {
	t.Parallel()
	leader, err := shared.Leader(t.Context())
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoError(c, leader.Logged("does not serve this workload kind", "edge.example.com/v1/Fleet"))
	}, fixture.Patience, interval)

	const unserved = "the cluster does not serve Fleet.edge.example.com in version v1"
	_, err = shared.Why(t.Context(), "fleet/early", "-n", "default", fleet.Flag())
	require.ErrorContains(t, err, "read the workload: "+unserved)
	_, err = shared.Clean(t.Context(), "fleet/early", "-n", "default", fleet.Flag())
	require.ErrorContains(t, err, "read fleet/early: "+unserved)

	fleet.Define(t, shared)
	s := fleet.Fixture(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := observe.Workload{Kind: "Fleet", Namespace: s.Namespace, Name: "early"}
	podSpec := fleetPods(newFleet(s, "early"))
	get := func(name string) *unstructured.Unstructured {
		t.Helper()
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(fleet.Kind())
		require.NoError(t, s.Client.Get(t.Context(), types.NamespacedName{Namespace: s.Namespace, Name: name}, object))
		return object
	}

	require.NoError(t, s.Create(t.Context(), newFleet(s, "early")))
	s.Await("the kind to be reloaded", func() error {
		if get("early").GetAnnotations()[fixture.ConfigRecord] == "" {
			return errors.New("it has no Record")
		}
		return nil
	})
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "no webhook looks at this kind yet, the loop stamps it itself")
	s.AwaitEvent(w, "Reloaded", "configmap/app modified")

	fleet.Serve(s, newFleet(s, "probe"))
	s.CreatePromptly(newFleet(s, "late"))
	late := observe.Workload{Kind: "Fleet", Namespace: s.Namespace, Name: "late"}
	assert.Contains(t, get("late").GetAnnotations()[fixture.ConfigRecord], "configmap/app=", "the webhook stamps the kind at CREATE")
	s.SetConfigMap("app", "key", "3")
	s.AwaitChanges(w, 2, "now by the webhook")
	s.AwaitChanges(late, 1, "now by the webhook")
	s.Settled()
	s.RequireChanges(w, 2, "each change is one restart")
	s.RequireChanges(late, 1, "one change is one restart")
	for _, name := range []string{"early", "late"} {
		stored := get(name)
		assert.Equal(t, podSpec, fleetPods(stored), "%s: unknown fields survive the loop and the webhook", name)
		assert.NotContains(t, stored.GetAnnotations(), fixture.ConfigHash, "%s: no request stays", name)
	}
	text, err := shared.Why(t.Context(), "fleet/late", "-n", s.Namespace, fleet.Flag())
	require.NoError(t, err)
	assert.Contains(t, text, "configmap/app", "why knows the kind")
}

// The definition of a kind is deleted, and created again with another plural: the kind is looked up again.
func TestKindThatIsDefinedAnewWithAnotherPlural(t *testing.T) {
	t.Parallel()
	cp := shared.ControlPlane()
	create := func(s *fixture.Fixture, f fixture.Fleet, name string) (path string) {
		object := newFleet(s, name)
		object.SetGroupVersionKind(f.Kind())
		text, err := object.MarshalJSON()
		require.NoError(t, err)
		path = fmt.Sprintf("/apis/%s/v1/namespaces/%s/%s", f.Group, s.Namespace, f.Resource().Resource)
		_, err = cp.KubectlInput(t.Context(), string(text), "create", "--raw", path, "-f", "-")
		require.NoError(t, err)
		return path + "/" + name
	}
	followed := func(s *fixture.Fixture, path string) {
		s.Await("the Record of "+path, func() error {
			text, err := cp.Kubectl(t.Context(), "get", "--raw", path)
			if err == nil && !strings.Contains(text, fixture.ConfigRecord) {
				err = errors.New("there is none")
			}
			return err
		})
	}
	defined.Define(t, shared)
	before := fixture.New(t, shared)
	before.ConfigMap("app", fixture.Data{"key": "1"})
	followed(before, create(before, defined, "before"))
	_, err := cp.Kubectl(t.Context(), "delete", "customresourcedefinition", defined.Resource().GroupResource().String())
	require.NoError(t, err)

	anew := defined
	anew.Plural = "flotillas"
	anew.Define(t, shared)
	s := anew.Fixture(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	followed(s, create(s, anew, "after"))
	s.SetConfigMap("app", "key", "2")
	w := observe.Workload{Kind: "Fleet", Namespace: s.Namespace, Name: "after"}
	s.AwaitChanges(w, 1, "the patch goes to the resource that is served now")
	s.AwaitEvent(w, "Reloaded", "configmap/app modified")
}
