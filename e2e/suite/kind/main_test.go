package kind_test

import (
	"context"
	"os"
	"testing"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// shared is the installation of the tests. The refractory gate is off, so that a reload too many shows.
var shared *installation.Installation

// argoController is the controller of Argo Rollouts.
var argoController *controlplane.Process

func TestMain(m *testing.M) {
	os.Exit(installation.Main(m, controlplane.Options{}, installation.Options{
		KeepRunning: true, Patient: true, Args: []string{"--refractory=0s", "--settle=300ms"},
		Components: []string{"run-cronjobs", "recreate-jobs", "argo-rollouts", "csi-integration"},
	}, func(i *installation.Installation) {
		shared = i
		err := defineSecretsStore(context.Background(), i.ControlPlane())
		if err != nil {
			panic(err)
		}
		if argoController, err = runArgo(context.Background(), i.ControlPlane()); err != nil {
			panic(err)
		}
	}))
}

// The annotations of Stakater's Reloader.
const (
	auto        = "reloader.stakater.com/auto"
	pausePeriod = "deployment.reloader.stakater.com/pause-period"
	pausedAt    = "deployment.reloader.stakater.com/paused-at"
)
