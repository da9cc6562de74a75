package sequence_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// cert-manager creates the Secret of a Certificate after the Deployment that mounts it: the pods wait and start with it.
func TestRequiredSecretCreatedLaterRestartsNothing(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	workloads := s.EveryKind("web", fixture.Uses{Secrets: []string{"tls"}, Replicas: 1})
	for _, w := range workloads {
		s.AwaitEvent(w, "ConfigMissing", "secret/tls")
	}
	s.Secret("tls", fixture.Data{"tls.crt": "1"})
	for _, w := range workloads {
		s.AwaitAdopted(w, "secret/tls")
	}
	s.AwaitExactly(0, "the waiting pods start with the new Secret by themselves", workloads...)
	s.SetSecret("tls", "tls.crt", "2")
	s.AwaitExactly(1, "the certificate was renewed", workloads...)
}

func TestRequiredSecretDeletedAndCreatedAgainRestartsNothing(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"password": "1"})
	workloads := s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}, Replicas: 1})
	deleted := func() {
		t.Helper()
		require.NoError(t, s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "db"}}))
	}
	deleted()
	for _, w := range workloads {
		s.AwaitEvent(w, "ReloadHeld", "secret/db", "could not start")
	}
	s.AwaitExactly(0, "new pods could not start", workloads...)
	s.Secret("db", fixture.Data{"password": "1"})
	s.AwaitExactly(0, "it is back with the same content", workloads...)

	deleted()
	s.Secret("db", fixture.Data{"password": "2"})
	s.AwaitExactly(1, "it is back with another content", workloads...)

	deleted()
	s.Settled()
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "new pods could not start, whatever else changes", workloads...)
	s.Secret("db", fixture.Data{"password": "3"})
	s.AwaitExactly(2, "what was held, and the new content, are one restart", workloads...)
}

// A required Secret is absent at first, then there, then gone while the workload is released and rolled back.
func TestRequiredSecretMissingDuringARollback(t *testing.T) {
	t.Parallel()
	steadily(t, requiredSecretMissingDuringARollback)
}

func requiredSecretMissingDuringARollback(s *fixture.Fixture) error {
	s.Helper()
	w := s.Deployment("web", fixture.Uses{Secrets: []string{"db"}, Replicas: 1})
	rolledOut(s, w, 1)
	s.Secret("db", fixture.Data{"password": "1"})
	s.AwaitAdopted(w, "secret/db")
	require.NoError(s, s.Delete(s.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "db"}}))
	s.AwaitEvent(w, "ReloadHeld", "secret/db")
	_, err := s.Installation.ControlPlane().Kubectl(s.Context(), "-n", s.Namespace, "set", "image", "deployment/web", "main=example.com/app:2")
	require.NoError(s, err)
	rolledOut(s, w, 2)
	_, err = s.Installation.ControlPlane().Kubectl(s.Context(), "-n", s.Namespace, "rollout", "undo", "deployment/web")
	require.NoError(s, err)
	s.Settled()
	if err := changed(s, w, 2, "the release and its rollback: the reload is still held"); err != nil {
		return err
	}
	s.Secret("db", fixture.Data{"password": "2"})
	s.AwaitChanges(w, 3, "it is back with another content")
	s.Settled()
	return changed(s, w, 3, "once")
}
