package promise_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

func TestP1ContentChangeRestartsEveryAskingWorkloadOnce(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"password": "1"})
	s.ConfigMap("other", fixture.Data{"key": "1"})
	asking := s.EveryKind("asking", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}, Replicas: 2})
	bystanders := s.EveryKind("bystander", fixture.Uses{ConfigMaps: []string{"other"}, Replicas: 1})

	deployment := observe.Deployment(s.Namespace, "asking")
	s.AwaitRolledOut(deployment)
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "the content of configmap/app has changed", asking...)
	s.AwaitRolledOut(deployment)

	s.SetSecret("db", "password", "2")
	s.AwaitExactly(2, "the content of secret/db has changed", asking...)
	for _, w := range bystanders {
		s.AssertChanges(w, 0, "it depends on another ConfigMap")
	}
	s.AwaitRolledOut(deployment)
	assert.Equal(t, 3, s.Watcher.ReplicaSets(deployment), "the first rollout and one for each change")
}

func TestP1CreatedAndDeletedObjectsRestartOnce(t *testing.T) {
	t.Parallel()
	inTime(t, func(s *fixture.Fixture) bool {
		s.ConfigMap("app", fixture.Data{"key": "1"})
		uses := fixture.Uses{ConfigMaps: []string{"app", "later"}, Secrets: []string{"later"}, Unread: true}
		workloads := append(s.EveryKind("web", uses), readsOptionally(s, "later", uses))
		each := func(n int, why string, causes ...string) {
			t.Helper()
			s.AwaitExactly(n, why, workloads...)
			for _, w := range workloads {
				s.AwaitEvent(w, "Reloaded", causes...)
			}
		}
		together := within(settle, func() {
			s.ConfigMap("later", fixture.Data{"key": "1"})
			s.Secret("later", fixture.Data{"key": "1"})
		})
		if !together {
			return false
		}
		each(1, "listed objects that were absent were created: one restart for both", "configmap/later created", "secret/later created")
		require.NoError(t, s.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "later"}}))
		each(2, "a listed object that no pod requires was deleted", "configmap/later deleted")
		s.ConfigMap("later", fixture.Data{"key": "1"})
		s.AwaitExactly(3, "it is there again, long after", workloads...)
		return true
	})
}

// readsOptionally creates a Deployment whose pods read a ConfigMap and a Secret of a name, and start without them.
func readsOptionally(s *fixture.Fixture, name string, uses fixture.Uses) observe.Workload {
	s.Helper()
	manifest := s.Manifest("Deployment", "optional", uses)
	var sources []any
	for _, source := range []string{"configMapRef", "secretRef"} {
		sources = append(sources, map[string]any{source: map[string]any{"name": name, "optional": true}})
	}
	containers := []any{map[string]any{"name": "main", "image": "example.com/app:1", "envFrom": sources}}
	require.NoError(s, unstructured.SetNestedSlice(manifest.Object, containers, "spec", "template", "spec", "containers"))
	s.CreatePromptly(manifest)
	return observe.Deployment(s.Namespace, manifest.GetName())
}

// Without the webhook, and without any permission outside one namespace.
func directModeInOneNamespaceRestartsOnce(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewInTurn(t, cp, installation.Options{
		KeepRunning: true, LongLease: true, WithoutWebhook: true, Components: []string{"namespaced"},
		Args: []string{"--settle=200ms", "--refractory=0s"},
	})
	s, outside := fixture.In(t, in, "my-app"), fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "0"})
	outside.ConfigMap("app", fixture.Data{"key": "0"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	inside, others := s.EveryKind("web", uses), outside.EveryKind("web", uses)
	for _, w := range inside {
		s.AwaitKnown(w)
	}
	for n := 1; n <= 3; n++ {
		s.SetConfigMap("app", "key", strconv.Itoa(n))
		outside.SetConfigMap("app", "key", strconv.Itoa(n))
		s.AwaitExactly(n, "the content has changed", inside...)
	}
	outside.AwaitExactly(0, "it is in a namespace outside the scope of the installation", others...)
	stampedContentReturns(s, 0)
}
