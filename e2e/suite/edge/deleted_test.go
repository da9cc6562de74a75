package edge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// With --reload-on-delete, the deletion of an object that an expression selects creates a Job again. The new one does not track the object.
func deletedOfAPattern(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	s := fixture.New(t, installation.NewPromptInTurn(t, cp, installation.Options{Args: []string{"--reload-on-delete"}, Components: []string{"recreate-jobs"}}))
	s.ConfigMap("app-0", fixture.Data{"key": "1"})
	s.ConfigMap("app-1", fixture.Data{"key": "1"})
	manifest := s.Manifest("Job", "import", fixture.Uses{Annotations: map[string]string{fixture.ReloaderConfigMaps: "app-.*"}})
	s.CreatePromptly(manifest)
	cron := observe.Workload{Kind: "CronJob", Namespace: s.Namespace, Name: "backup"}
	s.CreatePromptly(s.Manifest(cron.Kind, cron.Name, fixture.Uses{Annotations: map[string]string{fixture.ReloaderConfigMaps: "app-.*"}}))
	w, old := observe.Workload{Kind: "Job", Namespace: s.Namespace, Name: "import"}, manifest.GetUID()

	require.NoError(t, s.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "app-1"}}))
	next := s.AwaitRecreated(w, old).GetUID()
	s.AwaitEvent(w, "Reloaded", "created again", "configmap/app-1 deleted")
	s.Settled()
	found := s.Get(w)
	assert.Equal(t, next, found.GetUID(), "once")
	assert.NotContains(t, found.GetAnnotations()[fixture.ConfigRecord], "app-1")

	s.AwaitEvent(cron, "Reloaded", "next scheduled run", "configmap/app-1 deleted")
	s.Reported()
	for _, event := range s.Events(cron) {
		assert.NotEqual(t, "RunForbidden", event.Reason, "the permission is there, and the installation refuses runs")
	}
	all := &batchv1.JobList{}
	require.NoError(t, s.List(s.Context(), all, client.InNamespace(s.Namespace)))
	assert.Len(t, all.Items, 1, "no run of the CronJob")
}
