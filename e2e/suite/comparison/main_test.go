package comparison_test

import (
	"os"
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// shared is the installation of all tests of the package. Those that stop a replica or the API server do not run beside
// others. The refractory gate is off, so that a restart too many shows instead of being put off.
var shared *installation.Installation

func TestMain(m *testing.M) {
	os.Exit(installation.Main(m, controlplane.Options{}, installation.Options{Patient: true, LongLease: true, Args: []string{
		"--refractory=0s", "--settle=300ms", "--shutdown-grace-period=500ms",
	}}, func(i *installation.Installation) { shared = i }))
}
