package sequence_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// earlier is the commit that an upgrade begins with, and a downgrade ends with, until there is a release to pin: the first one
// that has the flags of the manifests and the plain words in its messages, before annotations of Reloader were read. It must
// know all flags of manifests/base.
const earlier = "899735288046d155281771582b0aee039ec69456"

// An upgrade, its rollback, and the upgrade again: replicas of an earlier build and of this one, which also has
// --hash=revision, share the webhook and hand the loop to each other. No workload restarts for that, and neither undoes what
// the other has written.
func TestReplicasOfTwoVersions(t *testing.T) {
	t.Parallel()
	common := []string{"--refractory=0s", "--settle=100ms", "--shutdown-grace-period=200ms"}
	before := installation.ReplicaOptions{Program: build(t, sourceOf(t, earlier), "v1.0.0")}
	after := installation.ReplicaOptions{Program: build(t, toolchain.RootOf(t), "v2.0.0"), Args: []string{
		"--hash=revision", "--leader-election-lease-duration=75s", "--leader-election-renew-deadline=60s", // the earlier one has no such flags
	}}
	in := installation.New(t, controlplane.New(t, controlplane.Options{}), installation.Options{
		Replicas: 1, KeepRunning: true, Patient: true, Args: common, Program: before.Program,
	})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1}
	var workloads []observe.Workload
	for n := range 5 {
		workloads = append(workloads, s.Deployment("web"+strconv.Itoa(n), uses))
	}
	changes := 0
	change := func(why string) {
		t.Helper()
		changes++
		s.SetConfigMap("app", "key", fmt.Sprintf("changed %d times", changes))
		for _, w := range workloads {
			s.AwaitChanges(w, changes, why)
		}
	}
	quiet := func(why string) {
		t.Helper()
		s.AwaitExactly(changes, why, workloads...)
	}

	oldest := in.Replicas()[0]
	newer, err := in.AddReplica(t.Context(), after)
	require.NoError(t, err)
	for round, asked := range []*installation.Replica{newer, oldest, newer, oldest} {
		ask(s, asked, workloads[0])
		for _, w := range workloads {
			require.NoError(t, s.Update(t.Context(), s.Manifest(w.Kind, w.Name, uses)), "a PUT without our annotations")
			s.MergeWorkload(w, fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}}}`, round))
		}
		quiet("one version keeps what the other one has stamped")
		change("the loop is of the first version, the webhook of " + asked.Name())
		quiet("what one asks for and the other verifies is one restart")
		differs := strings.Contains(s.Get(workloads[0]).GetAnnotations()[fixture.LastReload], `"digest":`)
		assert.Equal(t, asked == newer, differs, "%s has stamped, and with --hash=revision the hash is not the digest that was asked for", asked.Name())
	}

	mark, err := in.ControlPlane().Audit().Mark()
	require.NoError(t, err)
	require.NoError(t, in.RemoveReplica(t.Context(), oldest))
	quiet("the new version takes over what the old one has left")
	change("the upgrade is done")
	older, err := in.AddReplica(t.Context(), before)
	require.NoError(t, err)
	require.NoError(t, in.RemoveReplica(t.Context(), newer))
	quiet("the old version takes over again")
	change("the upgrade is rolled back")
	newest, err := in.AddReplica(t.Context(), after)
	require.NoError(t, err)
	require.NoError(t, in.RemoveReplica(t.Context(), older))
	quiet("the new version takes over a second time")
	change("the upgrade is made again")
	quiet("once")
	requests, err := in.ControlPlane().Audit().Since(t.Context(), mark)
	require.NoError(t, err)
	patches := requests.By(in.Identity().User).In(s.Namespace).Where(func(r controlplane.Request) bool {
		return r.Resource == "deployments" && r.Verb == "patch" && r.Code < 300
	})
	// A poke that the webhook was too slow for is followed by another write.
	assert.LessOrEqual(t, len(patches.Within(fixture.Prompt)), 3*len(workloads), "a write for each reload, and none that undoes another")
	assert.GreaterOrEqual(t, len(patches), 3*len(workloads), "the audit log has a write for each reload")
	assert.NotZero(t, newest.PID())
}

// ask has the API server ask a certain replica from now on. The write that shows it is one that the webhook has nothing to
// say to, so it may go wrong.
func ask(s *fixture.Fixture, replica *installation.Replica, w observe.Workload) {
	s.Helper()
	balancer, n := s.Installation.Balancer(), 0
	s.Await("the API server to ask "+replica.Name(), func() error {
		balancer.Break()
		before := balancer.Accepted()
		n++
		s.MergeWorkload(w, fmt.Sprintf(`{"metadata":{"labels":{"asks":"%d"}}}`, n))
		accepted := balancer.Accepted()
		for name, count := range accepted {
			if fresh := count > before[name]; fresh != (name == replica.Name()) {
				return errors.New("it asks another one")
			}
		}
		return nil
	})
}

// build compiles the program as a release of some version.
func build(t *testing.T, source, version string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "pod-reloader-"+version)
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", program, ".")
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	printed, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput()
	require.NoError(t, err, string(printed))
	require.Contains(t, string(printed), version)
	return program
}

// sourceOf returns a directory with the source of the program as of a commit. In a shallow clone, which lacks the commit, it is the
// present source: the two builds then differ in the version only. A continuous integration with the whole history must have it.
func sourceOf(t *testing.T, commit string) string {
	t.Helper()
	lookup := exec.CommandContext(t.Context(), "git", "cat-file", "-e", commit+"^{commit}")
	lookup.Dir = toolchain.RootOf(t)
	if lookup.Run() != nil {
		require.False(t, os.Getenv("CI") == "true" && completeHistory(t), "the history has no commit %s", commit)
		poll.Note(t, "the clone has no commit "+commit+", so both builds are of the present source; git fetch --unshallow gets it")
		return toolchain.RootOf(t)
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "source.tar")
	export := exec.CommandContext(t.Context(), "git", "archive", "--output", archive, commit, "go.mod", "go.sum", "main.go", "pkg", "webhook")
	export.Dir = toolchain.RootOf(t)
	output, err := export.CombinedOutput()
	require.NoError(t, err, string(output))
	output, err = exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", dir).CombinedOutput()
	require.NoError(t, err, string(output))
	return dir
}

// completeHistory reports whether the working tree is a clone that is not shallow.
func completeHistory(t *testing.T) bool {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", "rev-parse", "--is-shallow-repository")
	command.Dir = toolchain.RootOf(t)
	output, err := command.Output()
	return err == nil && strings.TrimSpace(string(output)) == "false"
}
