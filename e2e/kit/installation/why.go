package installation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// Why runs `pod-reloader why` as the administrator and returns what it prints. With another Program in the options it is
// that of the working tree all the same.
func (i *Installation) Why(ctx context.Context, args ...string) (string, error) {
	return i.tool(ctx, i.cp.AdminKubeconfig(), append([]string{"why"}, args...))
}

// Graph runs `pod-reloader graph` as the administrator and returns what it prints.
func (i *Installation) Graph(ctx context.Context, args ...string) (string, error) {
	return i.tool(ctx, i.cp.AdminKubeconfig(), append([]string{"graph"}, args...))
}

// Clean runs `pod-reloader clean` as the administrator, without input, and returns what it prints.
func (i *Installation) Clean(ctx context.Context, args ...string) (string, error) {
	return i.tool(ctx, i.cp.AdminKubeconfig(), append([]string{"clean"}, args...))
}

// Check runs `pod-reloader check` as the administrator and returns what it prints. The error has what it reports.
func (i *Installation) Check(ctx context.Context, args ...string) (string, error) {
	return i.tool(ctx, i.cp.AdminKubeconfig(), append([]string{"check"}, args...))
}

// WhyAs is Why with the permissions of another user; with those of [Installation.Identity] it is what `kubectl exec` into the
// pod would print.
func (i *Installation) WhyAs(ctx context.Context, id controlplane.Identity, args ...string) (output string, err error) {
	dir, err := os.MkdirTemp(i.cp.Dir(), "why-")
	if err != nil {
		return "", fmt.Errorf("make a directory for a kubeconfig: %w", err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := i.cp.WriteKubeconfig(kubeconfig, id); err != nil {
		return "", err
	}
	return i.tool(ctx, kubeconfig, append([]string{"why"}, args...))
}

// tool runs a sub-command.
func (i *Installation) tool(ctx context.Context, kubeconfig string, args []string) (string, error) {
	program := i.executable
	if i.options.Program != "" {
		var err error
		if program, err = Build(ctx, "."); err != nil {
			return "", err
		}
	}
	command := exec.CommandContext(ctx, program, args...)
	command.Env = toolchain.ShortLived("KUBECONFIG="+kubeconfig, "POD_NAMESPACE="+i.Namespace())
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		return string(output), fmt.Errorf("pod-reloader %s: %w: %s", strings.Join(args, " "), err, errors.String())
	}
	return string(output), nil
}
