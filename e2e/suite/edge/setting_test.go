package edge_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// With --missing-required=reload the deletion of an object that pods need is a change like any other. Its return is none:
// the new pods wait for it, and start with it by themselves.
func missingRequiredReload(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{Args: []string{"--missing-required=reload"}})
	s := fixture.New(t, in)
	s.Secret("db", fixture.Data{"key": "1"})
	workloads := s.EveryKind("web", fixture.Uses{Secrets: []string{"db"}})
	require.NoError(t, s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "db"}}))
	s.AwaitExactly(1, "it is set", workloads...)
	for _, w := range workloads {
		s.AwaitEvent(w, "Reloaded", "secret/db deleted")
	}
	s.Secret("db", fixture.Data{"key": "2"})
	for _, w := range workloads {
		s.AwaitAdopted(w, "secret/db")
	}
	s.AwaitExactly(1, "the pods that wait for it start with it", workloads...)
	s.SetSecret("db", "key", "3")
	s.AwaitExactly(2, "and its changes count as before", workloads...)
	s.Reported()
	for _, w := range workloads {
		for _, event := range s.Events(w) {
			assert.NotEqual(t, "ReloadHeld", event.Reason, "%s: nothing is held: %s", w, event.Note)
		}
	}
	fixture.AssertNothingDenied(t, in)
}

// A last-reload is a day ahead, from a wrong clock: the refractory period counts from when it is seen.
func reloadByAClockThatIsAhead(t *testing.T, cp *controlplane.ControlPlane, withoutWebhook bool) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{Replicas: 1, WithoutWebhook: withoutWebhook, Args: []string{"--refractory=1s"}})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	s.AwaitKnown(w)
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "its configuration changed")
	s.AwaitEvent(w, "Reloaded", "configmap/app modified")

	require.NoError(t, in.StopAll(s.Patiently()))
	dayAhead := time.Now().Add(24 * time.Hour)
	stamped(s, w, dayAhead)
	require.NoError(t, in.StartAll(s.Patiently()))
	s.SetConfigMap("app", "key", "3")
	s.AwaitExactly(2, "the reload does not wait for a day", w)
	assert.True(t, lastReload(s, w).Before(dayAhead.Add(-time.Hour)), "the new one is by our own clock")
}

// stamped writes another time into the last-reload of a workload, while no replica may restore it.
func stamped(s *fixture.Fixture, of observe.Workload, at time.Time) {
	s.Helper()
	var fields map[string]any
	require.NoError(s, json.Unmarshal([]byte(s.Get(of).GetAnnotations()[fixture.LastReload]), &fields))
	fields["time"] = at.UTC().Format("2006-01-02T15:04:05.000Z")
	text, err := json.Marshal(fields)
	require.NoError(s, err)
	s.MergeWorkload(of, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fixture.LastReload, text))
	require.WithinDuration(s, at, lastReload(s, of), time.Second)
}

func lastReload(s *fixture.Fixture, of observe.Workload) time.Time {
	s.Helper()
	var last struct{ Time time.Time }
	require.NoError(s, json.Unmarshal([]byte(s.Get(of).GetAnnotations()[fixture.LastReload]), &last))
	return last.Time
}

// A workload that is deleted and created anew under the same name is another one: what is remembered of the first, as the
// generation that was written last, does not hold the second back.
func TestWorkloadDeletedAndCreatedAnew(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	workloads := s.EveryKind("web", uses)
	for n := 1; n <= 3; n++ {
		s.SetConfigMap("app", "key", fmt.Sprintf("changed %d times", n))
		s.AwaitExactly(n, "its configuration changed", workloads...)
	}
	for _, w := range workloads {
		manifest := s.Manifest(w.Kind, w.Name, uses)
		require.NoError(t, s.Delete(t.Context(), manifest.DeepCopy()))
		s.CreatePromptly(manifest)
	}
	require.NoError(t, s.Watcher.Sync(s.Patiently()), "the changes of the first ones are not counted any more")
	s.SetConfigMap("app", "key", "after the creation")
	s.AwaitExactly(1, "the new one has had one change of its configuration", workloads...)

	for _, w := range workloads {
		require.NoError(t, s.Delete(t.Context(), s.Manifest(w.Kind, w.Name, uses)))
	}
	s.SetConfigMap("app", "key", "while there is none")
	for _, w := range workloads {
		s.CreatePromptly(s.Manifest(w.Kind, w.Name, uses))
	}
	s.AwaitExactly(0, "the new one was created with what it needs", workloads...)
	s.SetConfigMap("app", "key", "in the end")
	s.AwaitExactly(1, "and is reloaded", workloads...)
}
