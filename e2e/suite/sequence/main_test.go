package sequence_test

import (
	"os"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// shared is the installation of the tests that do it no harm. The refractory gate is off, so that a restart too many
// shows instead of being put off.
var shared *installation.Installation

// settle is the settle time of the shared installation.
const settle = 300 * time.Millisecond

func TestMain(m *testing.M) {
	os.Exit(installation.Main(m, controlplane.Options{}, installation.Options{KeepRunning: true, Patient: true, LongLease: true, Args: []string{"--refractory=0s", "--settle=" + settle.String()}},
		func(i *installation.Installation) { shared = i }))
}
