package scene

import (
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/controlplane"
)

// Warned returns the scene as a user sees it who is shown the warnings of the API server, and those.
func (s *Scene) Warned() (*Scene, *controlplane.Warnings) {
	s.Helper()
	heard := &controlplane.Warnings{}
	config := s.Installation.ControlPlane().Admin()
	config.WarningHandler = heard
	c, err := client.New(config, client.Options{})
	require.NoError(s, err)
	user := *s
	user.Client = c
	return &user, heard
}
