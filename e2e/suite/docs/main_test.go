package docs_test

import (
	"os"
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// shared is the default installation, as the pages expect it. It follows the configuration that docs/configuration.md writes.
var shared *installation.Installation

func TestMain(m *testing.M) {
	options := installation.Options{KeepRunning: true, Patient: true, LongLease: true, Args: []string{"--config=configmap:pod-reloader/pod-reloader"}}
	os.Exit(installation.Main(m, controlplane.Options{}, options, func(i *installation.Installation) { shared = i }))
}
