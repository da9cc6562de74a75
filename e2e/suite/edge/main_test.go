package edge_test

import (
	"os"
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// shared is the installation of the tests that do it no harm. The refractory gate is off, so that a restart too many
// shows instead of being put off. Two of its kinds of workloads are not served at its start.
var shared *installation.Installation

func TestMain(m *testing.M) {
	os.Exit(installation.Main(m, controlplane.Options{}, installation.Options{KeepRunning: true, Patient: true, LongLease: true, Args: []string{
		"--refractory=0s", "--settle=300ms", fleet.Flag(), defined.Flag(),
	}}, func(i *installation.Installation) { shared = i }))
}
