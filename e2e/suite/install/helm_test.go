package install_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// chart is the directory of the chart.
func (w *world) chart() string {
	return filepath.Join(filepath.Dir(w.manifests), "chart", "pod-reloader")
}

// helm runs Helm in pod-reloader's namespace, and returns what it prints to standard output.
func (w *world) helm(t *testing.T, args ...string) string {
	t.Helper()
	output, err := w.runHelm(patiently(t), t.TempDir(), args...)
	require.NoError(t, err)
	return output
}

func (w *world) runHelm(ctx context.Context, home string, args ...string) (string, error) {
	return w.runPinnedHelm(ctx, "helm", home, args...)
}

// runPinnedHelm runs Helm as a tool pins it: helm is Helm 3, and helm4 is Helm 4. Another namespace can be among the arguments.
func (w *world) runPinnedHelm(ctx context.Context, tool, home string, args ...string) (string, error) {
	dir, err := toolchain.Builder{}.Build(ctx, tool)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, filepath.Join(dir, "helm"), append([]string{"--namespace", ours.Namespace}, args...)...)
	command.Env = toolchain.ShortLived(toolchain.Helm(home, w.AdminKubeconfig())...)
	var output, failures strings.Builder
	command.Stdout, command.Stderr = &output, &failures
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", tool, strings.Join(args, " "), err, &failures)
	}
	return output.String(), nil
}

func (w *world) kubectl(t *testing.T, args ...string) {
	t.Helper()
	_, err := w.Kubectl(patiently(t), args...)
	require.NoError(t, err)
}
