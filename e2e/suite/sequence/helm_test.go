package sequence_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// Helm applies 60 ConfigMaps, 30 Services and then the Deployment: time passes between the first and the last. All of it
// is within the settle time here, however busy the machine is; then a replica takes over that waits for nothing, and does
// what is still due.
func TestHelmReleaseRollsOutOnce(t *testing.T) {
	t.Parallel()
	const ungated, quickly = "--refractory=0s", "--shutdown-grace-period=200ms"
	cp := controlplane.New(t, controlplane.Options{Audit: controlplane.AuditPolicy{Users: []string{controlplane.Admin().User}}})
	in := installation.New(t, cp, installation.Options{
		Replicas: 1, Patient: true, LongLease: true, Args: []string{ungated, quickly, "--settle=1h", "--settle-max=1h"},
	})
	s := fixture.New(t, in)
	tool, err := toolchain.Builder{}.Build(t.Context(), "helm")
	require.NoError(t, err)
	chart, home := writeChart(t), t.TempDir()
	upgrade := func(version int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(tool, "helm"), "upgrade", "--install", "big", chart,
			"--namespace", s.Namespace, "--set", fmt.Sprintf("version=%d", version))
		cmd.Env = toolchain.ShortLived(toolchain.Helm(home, in.ControlPlane().AdminKubeconfig())...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	w := observe.Deployment(s.Namespace, "web")
	upgrade(1)
	releases := 0
	release := func() {
		releases++
		upgrade(1 + releases)
		s.AwaitChanges(w, releases, "the release changed the image")
	}
	release()
	release()
	poll.Repeat(t, 8, fixture.LeftOut, func(int) bool { release(); return !late(s) })
	require.NoError(t, in.RemoveReplica(t.Context(), in.Replicas()[0]))
	_, err = in.AddReplica(t.Context(), installation.ReplicaOptions{Args: []string{ungated, quickly, "--settle=0s"}})
	require.NoError(t, err)
	s.AwaitExactly(releases, "each release changes configuration and workload, and rolls out once", w)
}

// late reports whether the last release took so long to write the Deployment that the webhook may have been left out: then
// something is due, and rightly so.
func late(s *fixture.Fixture) bool {
	s.Helper()
	requests, err := s.Installation.ControlPlane().Audit().All(s.Patiently())
	require.NoError(s, err)
	writes := requests.By(controlplane.Admin().User).In(s.Namespace).Where(func(r controlplane.Request) bool {
		return r.Resource == "deployments" && r.Verb == "patch"
	})
	require.NotEmpty(s, writes, "a release changes the Deployment")
	return len(writes[len(writes)-1:].Within(fixture.Prompt)) == 0
}

// writeChart makes a chart with 60 ConfigMaps, all of which its Deployment lists, and 30 Services.
func writeChart(t *testing.T) string {
	t.Helper()
	var all, names strings.Builder
	for n := range 60 {
		fmt.Fprintf(&all, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: app-%02d}\ndata: {version: \"{{ .Values.version }}\"}\n", n)
		fmt.Fprintf(&names, "app-%02d,", n)
	}
	for n := range 30 {
		fmt.Fprintf(&all, "---\napiVersion: v1\nkind: Service\nmetadata: {name: web-%02d}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n", n)
	}
	fmt.Fprintf(&all, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {%s: "%s"}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "example.com/app:{{ .Values.version }}"}]}
`, fixture.ConfigMaps, names.String())
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "templates"), 0o700))
	files := map[string]string{
		"Chart.yaml":         "{apiVersion: v2, name: big, version: 0.1.0}\n",
		"values.yaml":        "version: 1\n",
		"templates/all.yaml": all.String(),
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}
