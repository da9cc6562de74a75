package operator

import (
	"context"
	"net"
	"path/filepath"
	"strconv"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// DefineCertManager applies the definitions that come with the pinned cert-manager.
func DefineCertManager(ctx context.Context, cp *controlplane.ControlPlane) error {
	return Source{
		Pin: "tools/cert-manager", Module: "github.com/cert-manager/cert-manager", Paths: []string{"deploy/crds"},
	}.Apply(ctx, cp)
}

// RunCertManager runs its controllers until the control plane stops. They are for issuers of the types CA and SelfSigned.
func RunCertManager(ctx context.Context, cp *controlplane.ControlPlane) error {
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
