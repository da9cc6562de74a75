package install_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// shared is the world of the tests that leave pod-reloader installed; applied is what kubectl printed at the installation.
var (
	shared  *world
	applied string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	n, err := newNetwork()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = n.close() }()
	return controlplane.Main(m, options(n), func(cp *controlplane.ControlPlane) {
		if shared, err = furnish(context.Background(), cp, n); err == nil {
			applied, err = shared.install(context.Background())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "install pod-reloader:", err)
			_ = cp.Stop()
			_ = n.close()
			os.Exit(1)
		}
	})
}
