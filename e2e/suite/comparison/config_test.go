package comparison_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// kinds are those whose template the loop has stamped.
var kinds = []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"}

// SAP's config-hash is a digest over names, UIDs and resourceVersions. Whatever touches a config object gives it another
// resourceVersion, and a restore gives it another UID: the pods restart though they would read the same.
func TestMetadataEditsAndRestoresRestartNothing(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	var workloads []observe.Workload
	for _, kind := range kinds {
		workloads = append(workloads, s.Workload(kind, "web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}}))
	}
	configMap, secret := &corev1.ConfigMap{}, &corev1.Secret{}
	for n := range 10 {
		label := fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n)
		s.Merge(configMap, "app", label)
		s.Merge(secret, "db", label)
	}
	require.NoError(t, s.Delete(t.Context(), configMap))
	require.NoError(t, s.Delete(t.Context(), secret))
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	s.Settled()
	for _, w := range workloads {
		s.AssertChanges(w, 0, "labels were edited and the objects restored from a backup; what pods read is the same")
	}
	s.SetConfigMap("app", "key", "2")
	for _, w := range workloads {
		s.AwaitChanges(w, 1, "now the content is another one")
	}
}

// SAP splits its lists at the comma and leaves the white space on, so that it watches for an object called " b", which
// cannot exist.
func TestListsMayHaveSpaces(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("a", fixture.Data{"key": "1"})
	s.ConfigMap("b", fixture.Data{"key": "1"})
	s.Secret("c", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{Annotations: map[string]string{
		fixture.ConfigMaps: "a, b", fixture.Secrets: "\n  c ,\n",
	}})
	record := s.Get(w).GetAnnotations()[fixture.ConfigRecord]
	for _, ref := range []string{"configmap/a=", "configmap/b=", "secret/c="} {
		assert.Contains(t, record, ref, "the name behind the white space is tracked")
	}
	s.SetConfigMap("b", "key", "2")
	s.AwaitChanges(w, 1, "the second name of the list \"a, b\" changed")
	s.SetSecret("c", "key", "2")
	s.AwaitChanges(w, 2, "a name between line breaks changed")
	s.Settled()
	s.RequireChanges(w, 2, "each change is one restart")
}

// SAP's webhook configuration leaves out workloads with the labels "ignored" and "disabled", but its loop does not know
// them: it writes its dummy annotation, nobody takes it away, and the next opt-in meets it.
func TestLabelledWorkloadsAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	mark, err := s.Installation.ControlPlane().Audit().Mark()
	require.NoError(t, err)
	var excluded []observe.Workload
	for _, kind := range kinds {
		for _, label := range []string{"ignored", "disabled"} {
			excluded = append(excluded, s.Workload(kind, label, fixture.Uses{
				ConfigMaps: []string{"app"}, Labels: map[string]string{"pod-reloader.cs.sap.com/" + label: "true"},
			}))
		}
	}
	witness := s.Deployment("witness", fixture.Uses{ConfigMaps: []string{"app"}})
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(witness, 1, "a workload without such a label restarts")
	s.Settled()
	for _, w := range excluded {
		s.AssertChanges(w, 0, "its label takes it out")
		assert.NotContains(t, s.Get(w).GetAnnotations(), fixture.ConfigHash, "%s has a dummy annotation that nobody takes away", w)
	}
	writes, err := s.Installation.ControlPlane().Audit().Since(s.Patiently(), mark)
	require.NoError(t, err)
	for _, r := range writes.By(shared.Identity().User).In(s.Namespace).Writes() {
		assert.True(t, strings.HasPrefix(r.Name, "witness"), "%s was written by the loop, or an Event on it: %s", r.Name, r.What())
	}
}
