package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// AdminKubeconfig is the path of a kubeconfig that may do everything.
func (cp *ControlPlane) AdminKubeconfig() string { return cp.layout.file("admin.kubeconfig") }

// Kubectl runs kubectl, of the control plane's own version, as the administrator and returns its
// standard output. The error has what it wrote to standard error. A later --kubeconfig among args
// selects another user.
func (cp *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	return cp.KubectlInput(ctx, "", args...)
}

// KubectlInput is Kubectl with something on its standard input, for "apply -f -".
func (cp *ControlPlane) KubectlInput(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(cp.layout.kubernetes, "kubectl"), args...)
	command.Env = toolchain.ShortLived(
		"KUBECONFIG="+cp.AdminKubeconfig(), "KUBECACHEDIR="+cp.layout.file("kubectl-cache"), "KUBERC=off")
	command.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s",
			strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// ServerSide are the flags of kubectl apply with which a controller applies all that it manages.
func ServerSide(manager string) []string {
	return []string{"--server-side", "--force-conflicts", "--field-manager=" + manager}
}
