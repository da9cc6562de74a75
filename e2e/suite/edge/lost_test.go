package edge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// A definition that says of the template's metadata only that it is an object has the API server drop every annotation
// there, ours too, after admission: nothing can restart such a pod. The promise is then that it is reported, as it is
// where there is no template at all.
func stampThatIsNotStored(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	forgetful := fixture.Fleet{Group: "forgetful.example.com", Template: "spec.pods.template", Forgetful: true}
	in := installation.NewPromptInTurn(t, cp, installation.Options{Args: []string{forgetful.Flag()}})
	forgetful.Define(t, in)
	s := forgetful.Fixture(t, in)
	forgetful.Route(s)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	object := newFleet(s, "one")
	object.SetGroupVersionKind(forgetful.Kind())
	s.CreatePromptly(object)
	w := observe.Workload{Kind: "Fleet", Namespace: s.Namespace, Name: "one"}
	s.Await("the kind to be reloaded", func() error {
		stored := newFleet(s, "one")
		stored.SetGroupVersionKind(forgetful.Kind())
		require.NoError(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
		if stored.GetAnnotations()[fixture.ConfigRecord] == "" {
			return assert.AnError
		}
		return nil
	})
	none := newFleet(s, "none")
	none.SetGroupVersionKind(forgetful.Kind())
	unstructured.RemoveNestedField(none.Object, "spec", "pods")
	require.NoError(t, s.Create(t.Context(), none))
	s.AwaitEvent(observe.Workload{Kind: "Fleet", Namespace: s.Namespace, Name: "none"},
		"InvalidAnnotation", "no pod template at spec.pods.template")

	s.SetConfigMap("app", "key", "2")
	event := s.AwaitEvent(w, "StampLost", "spec.pods.template", "not restarted", "metadata.annotations")
	assert.Equal(t, "Warning", event.Type)
	s.AwaitExactly(0, "there is nothing to see on its template", w)
	s.Reported()
	for _, e := range s.Events(w) {
		assert.NotEqual(t, "Reloaded", e.Reason, "no pod was restarted: %s", e.Note)
	}
}
