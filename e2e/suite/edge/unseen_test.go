package edge_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// unseen is a kind whose definition is deleted while its watch fails.
var unseen = fixture.Fleet{Group: "unseen.example.com", Template: "spec.pods.template"}

// The definition of a kind is deleted with its workloads while their watch fails, as where its conversion webhook was removed first. What
// became due meanwhile is not due any more once the API server answers that there is no such kind. When the definition and the workloads are
// back from a backup, the one whose configuration has changed restarts, once, and the other one does not.
func definitionThatIsDeletedUnseen(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	proxy := &faultyProxy{}
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		LongLease: true, Args: []string{unseen.Flag()}, Connect: func(config *rest.Config) { proxy.serve(t, config) },
	})
	unseen.Define(t, in)
	s := fixture.New(t, in)
	saved := map[string]*unstructured.Unstructured{}
	for name, config := range map[string]string{"web": "app", "spare": "other"} {
		s.ConfigMap(config, fixture.Data{"key": "1"})
		fleet := newFleet(s, name)
		fleet.SetGroupVersionKind(unseen.Kind())
		fleet.SetAnnotations(map[string]string{fixture.ConfigMaps: config})
		require.NoError(t, s.Create(t.Context(), fleet))
		saved[name] = awaitFleet(s, name, "a Record", func(f *unstructured.Unstructured) bool { return f.GetAnnotations()[fixture.ConfigRecord] != "" })
	}

	proxy.begin(refused, "/fleets")
	_, err := cp.Kubectl(t.Context(), "delete", "customresourcedefinition", unseen.Resource().GroupResource().String())
	require.NoError(t, err)
	s.SetConfigMap("app", "key", "2")
	patiently(s, "a reload to be due", func() error { return isDue(s, true) })
	proxy.end()
	patiently(s, "no reload to be due", func() error { return isDue(s, false) })
	patiently(s, "the watch, which is for nothing", func() error { return healthOf(s, unseen.Resource().GroupResource().String(), 1) })

	unseen.Define(t, in)
	s.Await("the kind to be served", func() error { return restore(s, saved["web"]) })
	require.NoError(t, restore(s, saved["spare"]))
	stamped := func(f *unstructured.Unstructured) bool {
		return unseen.TemplateAnnotations(f)[fixture.ConfigHash] != ""
	}
	awaitFleet(s, "web", "a stamp", stamped)
	s.Settled()
	assert.False(t, stamped(awaitFleet(s, "spare", "its state", stays)), "its configuration is as it was")
	s.SetConfigMap("other", "key", "2")
	awaitFleet(s, "spare", "a stamp", stamped)
	s.Settled()
	for name := range saved {
		assert.EqualValues(t, 2, awaitFleet(s, name, "its state", stays).GetGeneration(), "%s: one change is one restart", name)
	}
}

// stays holds for each fleet.
func stays(*unstructured.Unstructured) bool { return true }

// awaitFleet waits until a fleet meets a condition.
func awaitFleet(s *fixture.Fixture, name, what string, holds func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	s.Helper()
	fleet := &unstructured.Unstructured{}
	fleet.SetGroupVersionKind(unseen.Kind())
	patiently(s, what+" of "+name, func() error {
		err := s.Client.Get(s.Context(), types.NamespacedName{Namespace: s.Namespace, Name: name}, fleet)
		if err == nil && !holds(fleet) {
			err = errors.New("there is none")
		}
		return err
	})
	return fleet
}

// restore creates a fleet as a backup has it.
func restore(s *fixture.Fixture, saved *unstructured.Unstructured) error {
	fleet := saved.DeepCopy()
	fleet.SetResourceVersion("")
	fleet.SetUID("")
	if err := s.Client.Create(s.Context(), fleet); err != nil {
		return fmt.Errorf("restore %s: %w", saved.GetName(), err)
	}
	return nil
}

// isDue compares whether a reload is due.
func isDue(s *fixture.Fixture, want bool) error {
	metrics, err := s.Installation.Metrics(s.Context())
	if err != nil {
		return err
	}
	if age := metrics.Sum("pod_reloader_oldest_due_reload_age_seconds"); (age > 0) != want {
		return fmt.Errorf("the oldest reload has been due for %v s", age)
	}
	return nil
}
