package configuration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// documented returns a file that docs/configuration.md shows.
func documented(t *testing.T, name string) string {
	t.Helper()
	text, err := toolchain.Documented("configuration.md", name)
	require.NoError(t, err)
	return text
}

// A tenant's installation starts without the permission on its configuration: this is reported, and does no harm. With the
// documented permissions, it follows the configuration, reports it and is denied nothing more.
func TestPermissionsOfATenant(t *testing.T) {
	t.Parallel()
	cp := controlplane.New(t, controlplane.Podless())
	in := installation.New(t, cp, installation.Options{
		Patient: true, LongLease: true,
		Args:       []string{"--refractory=0s", "--settle=200ms", "--config=configmap:pod-reloader/pod-reloader"},
		Components: []string{"namespaced"},
	})
	s := fixture.In(t, in, "my-app")
	t.Cleanup(func() { in.Explain(t, "my-app") })
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "the built-in kinds are reloaded")
	r := &fleetFixture{Fixture: s, pids: map[string]int{}}
	for _, replica := range in.Replicas() {
		r.pids[replica.Name()] = replica.PID()
		s.Await(replica.Name()+" to report the missing permission", func() error {
			return replica.Logged("ConfigurationUnreadable", "cannot be read, grant get, list and watch of it")
		})
	}

	require.NoError(t, cp.Apply(t.Context(), documented(t, "mine/configuration-permissions.yaml")))
	about := observe.Workload{Kind: "ConfigMap", Namespace: "pod-reloader", Name: "pod-reloader"}
	s.AwaitEvent(about, "ConfigurationUnreadable", "there is no ConfigMap pod-reloader/pod-reloader")
	before := r.denied()
	require.NoError(t, cp.Apply(t.Context(), documented(t, "mine/configuration.yaml")))
	s.AwaitEvent(about, "ConfigurationApplied", "added argoproj.io/v1alpha1/Rollout=spec.template")
	r.valid(1)
	_, err := in.WhyAs(t.Context(), in.Identity(), "deployment/web", "-n", "my-app", "--config=configmap:pod-reloader/pod-reloader")
	require.NoError(t, err)
	s.AwaitExactly(1, "one change was one restart", w)
	require.Len(t, r.denied(), len(before), "the documented permissions are enough")
}

func TestNewLeaderReportsTheInvalidConfiguration(t *testing.T) {
	t.Parallel()
	r := newFleetFixture(t, "--config="+inConfigMap, "--shutdown-grace-period=200ms")
	require.NoError(t, r.Create(t.Context(), settingsWith(map[string]string{"config.yaml": invalid})))
	r.AwaitEvent(settings, "ConfigurationRejected", invalid0)
	leader, err := r.Installation.Leader(t.Context())
	require.NoError(t, err)
	r.Reported()
	require.Equal(t, 1, r.rejections(), "the standby says nothing")
	require.NoError(t, r.Installation.RemoveReplica(r.Patiently(), leader))
	r.Await("the report of the new leader", func() error { return atLeast(r.rejections(), 2) })
}
