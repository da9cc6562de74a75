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
	w := s.Deployment("web", fixture.Uses{Secrets: []string{"tls"}, Replicas: 1})
	s.AwaitEvent(w, "ConfigMissing", "secret/tls")
	s.Secret("tls", fixture.Data{"tls.crt": "1"})
	s.AwaitAdopted(w, "secret/tls")
	s.Settled()
	s.RequireChanges(w, 0, "the waiting pods start with the new Secret by themselves")
	s.SetSecret("tls", "tls.crt", "2")
	s.AwaitChanges(w, 1, "the certificate was renewed")
	s.Settled()
	s.RequireChanges(w, 1, "once")
}

func TestRequiredSecretDeletedAndCreatedAgainRestartsNothing(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.Secret("db", fixture.Data{"password": "1"})
	w := s.Deployment("web", fixture.Uses{Secrets: []string{"db"}, Replicas: 1})
	require.NoError(t, s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "db"}}))
	s.AwaitEvent(w, "ReloadHeld", "secret/db", "could not start")
	s.Settled()
	s.RequireChanges(w, 0, "new pods could not start")
	s.Secret("db", fixture.Data{"password": "1"})
	s.Settled()
	s.RequireChanges(w, 0, "it is back with the same content")

	require.NoError(t, s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "db"}}))
	s.Secret("db", fixture.Data{"password": "2"})
	s.AwaitChanges(w, 1, "it is back with another content")
	s.Settled()
	s.RequireChanges(w, 1, "once")
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
