package controlplane_test

import (
	"os"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

// cp is shared by the tests that do it no harm.
var cp *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{}, func(c *controlplane.ControlPlane) { cp = c }))
}

// How long effects are waited for, and how often they are looked for.
const (
	timeout = 2 * time.Minute
	tick    = 50 * time.Millisecond
)
