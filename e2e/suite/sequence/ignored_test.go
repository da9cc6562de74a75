package sequence_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// A label excludes a workload. It is set by a manifest that knows nothing of our annotations, and that is applied again.
func TestIgnoredByPutAndBack(t *testing.T) {
	t.Parallel()
	steadily(t, ignoredByPutAndBack)
}

func ignoredByPutAndBack(s *fixture.Fixture) error {
	s.Helper()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	in := fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1}
	out := in
	out.Labels = map[string]string{"pod-reloader.cs.sap.com/ignored": "true"}
	w, kept := s.Deployment("web", in), s.Deployment("kept", in)
	stamp := fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
	require.NotEmpty(s, stamp)

	for range 3 {
		require.NoError(s, s.Update(s.Context(), s.Manifest("Deployment", "web", out)))
		require.NoError(s, s.Update(s.Context(), s.Manifest("Deployment", "kept", out)))
	}
	s.AwaitExactly(0, "each of these writes lacks the hash", w)
	require.Equal(s, stamp, fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash])

	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(0, "it is excluded", w)
	_, err := s.Installation.ControlPlane().Kubectl(s.Context(), "-n", s.Namespace, "set", "image", "deployment/web", "main=example.com/app:2")
	require.NoError(s, err)
	for _, name := range []string{"web", "kept"} {
		_, err = s.Installation.ControlPlane().Kubectl(s.Context(), "-n", s.Namespace, "label", "deployment/"+name, "pod-reloader.cs.sap.com/ignored-")
		require.NoError(s, err)
	}
	s.AwaitChanges(kept, 1, "its pods have the content of before the exclusion")
	s.Settled()
	return errors.Join(
		changed(s, w, 1, "the release only: its pods were started with the present content"),
		changed(s, kept, 1, "once"),
	)
}
