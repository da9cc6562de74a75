// Package certmanager runs the controllers of cert-manager on a control plane, with the definitions of the same release.
package certmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

const (
	// module is what e2e/tools/cert-manager builds.
	module = "github.com/cert-manager/cert-manager"
	// patience bounds the wait until the definitions are served.
	patience = 5 * time.Minute
)

// Define applies the definitions that come with the pinned cert-manager.
func Define(ctx context.Context, cp *controlplane.ControlPlane) error {
	root, err := toolchain.Root()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir = filepath.Join(root, "e2e", "tools", "cert-manager")
	command.Env = append(os.Environ(), "GOWORK=off")
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("find the module of cert-manager: %w: %s", err, output)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(output, &found); err != nil {
		return fmt.Errorf("find the module of cert-manager: %w", err)
	}
	crds := filepath.Join(found.Dir, "deploy", "crds")
	if _, err := cp.Kubectl(ctx, "apply", "--server-side", "-f", crds); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// kubectl wait fails at once on a definition that the API server has not given any condition yet.
	return poll.Until(ctx, "the definitions of cert-manager", time.Second, func(ctx context.Context) error {
		_, err := cp.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout="+patience.String(), "-f", crds)
		return err
	})
}

// Run runs the controllers until the control plane stops. They are for issuers of the types CA and SelfSigned.
func Run(ctx context.Context, cp *controlplane.ControlPlane) error {
	dir, err := toolchain.Builder{}.Build(ctx, "cert-manager")
	if err != nil {
		return err
	}
	port, err := cp.FreePort()
	if err != nil {
		return err
	}
	health := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	_, err = cp.StartProcess(ctx, controlplane.Program{
		Name: "cert-manager", Path: filepath.Join(dir, "cert-manager"),
		Args:  []string{"--kubeconfig=" + cp.AdminKubeconfig(), "--health-probe-bind-address=" + health},
		Env:   []string{controlplane.WithoutMutationDetector},
		Ready: controlplane.URLReady("http://" + health + "/readyz"),
	})
	return err
}
