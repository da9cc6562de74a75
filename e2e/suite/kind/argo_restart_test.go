package kind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// The controller evicts the pods that it restarts, and a PodDisruptionBudget keeps them: a write ends the restart before any pod is
// replaced. The template replaces them all then.
func TestRestartThatAWriteEndsIsCompleted(t *testing.T) {
	t.Parallel()
	s := argo(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, changes := rollout(s, "web", map[string]string{auto: "true", "reloader.stakater.com/rollout-strategy": "restart"}, nil)
	all := intstr.FromString("100%")
	require.NoError(t, s.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "all"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{}},
	}))
	before := pods(s, w)
	s.SetConfigMap("app", "key", "2")
	s.AwaitEvent(w, "Reloaded", "restarted: configmap/app modified")
	require.Equal(t, before, pods(s, w))

	s.JSONPatch(newRollout(), w.Name, `[{"op":"remove","path":"/spec/restartAt"}]`)
	s.AwaitChanges(w, changes+1, "the pods that are left have the earlier configuration")
	awaitNewPods(s, w, before)
	awaitHealthy(s, w)
	s.AwaitEvent(w, "Reloaded", "pod template updated: configmap/app modified")
	after := pods(s, w)
	s.AwaitExactly(changes+1, "and no more", w)
	assert.Equal(t, after, pods(s, w))
}
