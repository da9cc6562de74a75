package promise_test

import (
	"os"
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// shared is the installation of the tests that do it no harm. It is as shipped, with exceptions. A workload may be reloaded
// again at once, so that a test sees a restart too many, which the refractory gate would only put off. Configuration must be
// quiet for longer, so that the writes of a slow machine are one change. It counts reloads by namespace, and knows of a kind
// that is not compiled in, and that the cluster does not serve yet.
var shared *installation.Installation

func TestMain(m *testing.M) {
	os.Exit(installation.Main(m, controlplane.Options{}, installation.Options{KeepRunning: true, Patient: true, LongLease: true, Parallel: 4, Args: []string{
		"--refractory=0s", "--settle=" + settle.String(), "--settle-max=" + settleMax.String(),
		gadgets.Flag(),
	}, Env: []string{"METRICS_COUNT_BY_NAMESPACE=enabled"}},
		func(i *installation.Installation) { shared = i }))
}

// TestP1P4P5P7Settings needs an installation with other flags for each test. Its name has each of the promises, so that -run finds them.
func TestP1P4P5P7Settings(t *testing.T) {
	t.Parallel()
	installation.InTurn(t, controlplane.Podless(), []installation.Turn{
		{Name: "P1DirectModeInOneNamespaceRestartsOnce", Run: directModeInOneNamespaceRestartsOnce}, // with no permission anywhere else
		{Name: "P4RefractoryPeriodBoundsHowOftenAWorkloadRestarts", Run: refractoryPeriodBoundsHowOftenAWorkloadRestarts},
		{Name: "P5OnlyAWrongProofIsRejected", Run: onlyAWrongProofIsRejected},
		{Name: "P7DigestsDependOnTheKeyAndTheNamespace", Run: digestsDependOnTheKeyAndTheNamespace},
		{Name: "P7NoSecretStaysInMemoryOrLeavesTheProcess", Run: noSecretStaysInMemoryOrLeavesTheProcess},
	})
}
