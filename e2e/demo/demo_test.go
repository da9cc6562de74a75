package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// acts are the rows of the table.
var acts = []string{
	"everything is applied for the first time",
	"a ConfigMap of three workloads changes",
	"annotation and Event say why",
	"a client asks for a reload, outdated digest",
	"it asks with the digest of what there is",
	"a Secret below a workload's custom resource changes",
	"why, about that rollout",
	"ten objects of a workload change at once",
	"a release: configuration, then image",
	"a label edit, a scale, a PUT without our annotations",
	"delete, create again with equal content",
	"Reloader's search: an object with a match",
	"Reloader's search: an object without",
	"rollout undo of a reload",
	"rollout undo of a release",
	"a Secret changes while pod-reloader is down",
	"a custom resource changes and is not valid",
	"it becomes valid",
	"pod-reloader why",
	"two changes in a row",
	"count the ReplicaSets of cart, catalog, web, search",
}

// stalls is what the demo writes to in a test: it calls back when a text comes by.
type stalls struct {
	bytes.Buffer
	cue  string
	call func()
}

func (s *stalls) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if s.cue != "" && strings.Contains(s.String(), s.cue) {
		s.cue = ""
		s.call()
	}
	return n, err
}

// table is the marks by act, and fails the test where the table is not complete.
func table(t *testing.T, output string) map[string]string {
	t.Helper()
	_, rows, found := strings.Cut(output, "WHAT HAPPENS")
	require.True(t, found, "there is no table in\n%s", output)
	marks := map[string]string{}
	for line := range strings.Lines(rows) {
		for _, act := range acts {
			if strings.HasPrefix(line, act) {
				fields := strings.Fields(line)
				marks[act] = fields[len(fields)-1]
			}
		}
	}
	require.Len(t, marks, len(acts), "the table is not complete in\n%s", output)
	return marks
}

// failures are the lines of the output that say what failed.
func failures(output string) string {
	var failed strings.Builder
	for line := range strings.Lines(output) {
		if strings.Contains(line, "✗") {
			failed.WriteString(line)
		}
	}
	return failed.String()
}

// The whole demo, left running at its end and then interrupted.
func TestDemoKeepsItsPromises(t *testing.T) {
	var code int
	var output string
	var installed atomic.Pointer[installation.Installation]
	assert.NoError(t, poll.Steadily(t, func() error {
		code, output = playAndKeep(t, installed.Store)
		t.Log(output)
		if code != 0 {
			return fmt.Errorf("exit code %d: %s", code, failures(output))
		}
		return nil
	}, func(ctx context.Context) error {
		in := installed.Load()
		if in == nil {
			return nil
		}
		// A release is within the settle time only if the API server is fast enough.
		return in.ControlPlane().Client().Get(ctx, client.ObjectKey{Name: in.Namespace()}, &corev1.Namespace{})
	}))
	for act, mark := range table(t, output) {
		assert.Equal(t, "✓", mark, act)
	}
	assert.Contains(t, output, "promises kept, in ")
	assert.NotContains(t, output, "\x1b[", "colours are for terminals")
}

// playAndKeep plays the demo, interrupts it when everything keeps running, and returns its exit code and what it wrote.
func playAndKeep(t *testing.T, installed func(*installation.Installation)) (code int, output string) {
	t.Helper()
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	exported := regexp.MustCompile(`export KUBECONFIG=(\S+)`)
	out := &stalls{cue: "Ctrl-C here ends it"}
	out.call = func() {
		defer cancel()
		kubeconfig := exported.FindStringSubmatch(out.String())
		if assert.NotNil(t, kubeconfig, "it says how to use what keeps running") {
			assert.FileExists(t, kubeconfig[1])
		}
	}
	code = run(ctx, options{out: out, keep: true, installed: installed})
	assert.Empty(t, entries(t, temporary), "it leaves nothing behind")
	return code, out.String()
}

// A demo that cannot fail shows nothing.
func TestDemoFailsWithoutPodReloader(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	out := &stalls{}
	code := run(t.Context(), options{out: out, absent: true, patience: 2 * time.Second})
	t.Log(out.String())
	assert.Equal(t, 1, code)
	for act, mark := range table(t, out.String()) {
		assert.Equal(t, "✗", mark, "without a barrier nothing is certain, and without pod-reloader nothing is explained: %s", act)
	}
	assert.Contains(t, out.String(), "promises broken")
}

func TestDemoLeavesNothingBehindWhenInterrupted(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &stalls{cue: "$ kubectl apply --server-side", call: cancel}
	assert.Equal(t, interrupted, run(ctx, options{out: out}))
	assert.Contains(t, out.String(), "Interrupted")
	assert.Empty(t, entries(t, temporary))
}

func entries(t *testing.T, directory string) []string {
	t.Helper()
	found, err := os.ReadDir(directory)
	require.NoError(t, err)
	names := make([]string, 0, len(found))
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

// What is reported as observed comes from outside of the program.
func TestDemoImportsNothingOfTheProgram(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	const module = "github.com/pod-reloader/pod-reloader/"
	for dependency := range strings.Lines(string(output)) {
		if inside, ours := strings.CutPrefix(strings.TrimSpace(dependency), module); ours {
			assert.True(t, strings.HasPrefix(inside, "e2e/"), inside)
		}
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	t.Parallel()
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	terminal := func(string) string { return "xterm" }
	assert.False(t, colourful(file, terminal), "a file is no terminal")

	device, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { _ = device.Close() }()
	for name, tc := range map[string]struct {
		environment map[string]string
		want        bool
	}{
		"a terminal":              {map[string]string{"TERM": "xterm"}, true},
		"NO_COLOR":                {map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		"a terminal without them": {map[string]string{"TERM": "dumb"}, false},
		"an unknown terminal":     {nil, false},
	} {
		got := colourful(device, func(key string) string { return tc.environment[key] })
		assert.Equal(t, tc.want, got, name)
	}
}
