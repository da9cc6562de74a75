package edge_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// Events of one reason on a workload that stays as it is, but with another text: client-go's recorder counts an Event on
// an earlier one that agrees in all but the text, and the second text would be lost.
func TestEventsThatDifferInTheirTextAreAllKept(t *testing.T) {
	t.Parallel()
	s := stage(t)
	names := []string{"one", "three", "two"}
	for _, name := range names {
		s.Secret(name, fixture.Data{"key": "1"})
	}
	w := s.Workload("CronJob", "held", fixture.Uses{Secrets: names}) // no controller writes it
	s.AwaitKnown(w)
	version := s.Get(w).GetResourceVersion()
	for n, name := range names {
		require.NoError(t, s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}))
		s.AwaitEvent(w, "ReloadHeld", "secret/"+strings.Join(names[:n+1], " deleted, secret/")+" deleted")
		s.AwaitEvent(w, "ConfigMissing", "secret/"+strings.Join(names[:n+1], ", secret/"))
	}
	s.Reported()
	held, missing := 0, 0
	for _, event := range s.Events(w) {
		switch event.Reason {
		case "ReloadHeld":
			held++
		case "ConfigMissing":
			missing++
		}
	}
	assert.Equal(t, 3, held, "one Event a text")
	assert.Equal(t, 3, missing, "one Event a text")
	assert.Equal(t, version, s.Get(w).GetResourceVersion(), "all of them were about the same version of the workload")
}

// An Event about one config object refers to it.
func TestEventsReferToTheirCause(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"absent"}})
	event := s.AwaitEvent(w, "ConfigMissing", "secret/absent")
	assert.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: s.Namespace, Name: "absent"}, event.Related)
	s.SetConfigMap("app", "key", "2")
	event = s.AwaitEvent(w, "Reloaded", "configmap/app modified")
	assert.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.Namespace, Name: "app"}, event.Related)
}
