package sequence_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// Operators make workloads from the pod template of what they control, with its annotations. The test is the operator.
func TestReloadArrivesAtWhatAControllerMakes(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	parent := s.Deployment("parent", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	hash := func() string { return fixture.TemplateAnnotations(s.Get(parent))[fixture.ConfigHash] }
	yes := true
	manifest := s.Manifest("Deployment", "child", fixture.Uses{Replicas: 1})
	manifest.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "parent", UID: s.Get(parent).GetUID(), Controller: &yes}})
	s.CreatePromptly(manifest.DeepCopy())
	child := parent
	child.Name = "child"
	follow := func() {
		s.Strategic(&appsv1.Deployment{}, "child", fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, fixture.ConfigHash, hash()))
		require.Equal(t, hash(), fixture.TemplateAnnotations(s.Get(child))[fixture.ConfigHash])
	}
	follow()
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(parent, 1, "its configuration changed")
	follow()
	s.AwaitChanges(child, 2, "the operator copied both hashes")

	require.NoError(t, s.Update(t.Context(), manifest))
	s.AwaitExactly(2, "a write without a hash removes none", child)
}
