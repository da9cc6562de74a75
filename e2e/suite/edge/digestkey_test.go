package edge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// The Secret of the digest key is emptied while the replicas run. They reload as before, and an Event of the installation reports it until the
// Secret is restored.
func digestKeyThatCannotBeUsed(t *testing.T, in *installation.Installation) {
	t.Helper()
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	s.AwaitKnown(w)
	own := observe.Workload{Kind: "Deployment", Namespace: in.Namespace(), Name: "pod-reloader"}
	store := func(data map[string][]byte) (before map[string][]byte) {
		t.Helper()
		secret := &corev1.Secret{}
		require.NoError(t, s.Client.Get(t.Context(), types.NamespacedName{Namespace: in.Namespace(), Name: "pod-reloader-digest-key"}, secret))
		before, secret.Data = secret.Data, data
		require.NoError(t, s.Update(t.Context(), secret))
		return before
	}

	keys := store(nil)
	s.AwaitEvent(own, "DigestKeyUnusable", "the keys in memory stay in force", "the digest-key Secret has no data")
	require.NoError(t, installationEvent(s, "DigestKeyUnusable"))
	why, err := in.Why(t.Context(), "deployment/web", "-n", s.Namespace)
	require.NoError(t, err)
	assert.Contains(t, why, "the Secret pod-reloader/pod-reloader-digest-key is not usable; the replicas that run go on with the keys in their memory")
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "the keys are in memory", w)

	store(keys)
	s.AwaitEvent(own, "DigestKeyUsable", "usable again")
	s.SetConfigMap("app", "key", "3")
	s.AwaitExactly(2, "the same keys", w)
}
