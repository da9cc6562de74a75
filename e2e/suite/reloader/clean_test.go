package reloader_test

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// cleanUp removes what reloads have left on workloads: first what restarts nothing, then all.
func cleanUp(s *fixture.Fixture) {
	s.Helper()
	workloads := start(s, "Deployment", "StatefulSet", "DaemonSet")
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "a reload leaves something", workloads...)
	clean := func(args ...string) string {
		s.Helper()
		output, err := s.Installation.Clean(s.Context(), append(args, "-n", s.Namespace)...)
		require.NoError(s, err)
		return output
	}

	output := clean("--all", "--dry-run")
	assert.Contains(s, output, "deployment/web -n "+s.Namespace)
	assert.Contains(s, output, fixture.ConfigHash)
	assert.Contains(s, output, "3 workloads; changes the pod templates of 3")
	output, err := s.Installation.Clean(s.Context(), "statefulset/web", "-n", s.Namespace)
	require.ErrorContains(s, err, "nothing was removed; answer y, or use --yes")
	assert.Contains(s, output, "Remove it? [y/N]")
	assert.NotContains(s, clean("--all", "-l", "app=other", "--yes"), "cleaned")
	assert.Contains(s, clean("--all", "--without-restarts", "--yes"), "cleaned daemonset/web")
	assert.Equal(s, "3 workloads cleaned before, with pod templates that stay as they are\nnothing to remove\n", clean("--all", "--without-restarts"))
	s.Settled()
	for _, w := range workloads {
		s.AssertChanges(w, 1, "annotations of workloads restart nothing")
		stored := s.Get(w)
		assert.Equal(s, "true", stored.GetLabels()["pod-reloader.cs.sap.com/disabled"])
		for _, key := range []string{fixture.ConfigHash, fixture.ConfigRecord, fixture.LastReload} {
			assert.NotContains(s, stored.GetAnnotations(), key)
		}
		assert.Contains(s, fixture.TemplateAnnotations(stored), fixture.ConfigHash)
	}

	clean("deployment/web", "statefulset/web", "daemonset/web", "--yes")
	s.AwaitExactly(2, "a changed template does", workloads...)
	for _, w := range workloads {
		s.AssertUnmanaged(w, "it was cleaned")
		stored := s.Get(w)
		_, names := fixture.Environment(stored)
		assert.Equal(s, []string{"X"}, names)
		assert.Empty(s, fixture.TemplateAnnotations(stored))
		assert.Equal(s, "true", stored.GetAnnotations()[fixture.ReloaderAuto], "the user's annotations stay")
	}
	assert.Contains(s, clean("--all", "--yes"), "nothing to remove")
	_, err = s.Installation.Clean(s.Context(), "--all", "-n", "misspelled")
	require.ErrorContains(s, err, "namespace misspelled does not exist")
	s.SetConfigMap("app", "key", "3")
	s.AwaitExactly(2, "it is excluded", workloads...)
}
