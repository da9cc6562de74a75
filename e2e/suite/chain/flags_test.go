package chain_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The commands know the custom resources from the flags of the Deployment of the installation.
func TestCommandsReadTheFlagsOfTheInstallation(t *testing.T) {
	t.Parallel()
	s := newGraphFixture(t, shared)
	s.make("Part", "leaf", `{size: 1}`)
	s.make("Part", "root", `{parts: [{name: leaf}]}`)
	s.tracks("web", theParts+"root")
	_, err := shared.Graph(t.Context(), "-n", s.Namespace, "--installation-name=absent")
	require.ErrorContains(t, err, "the flags of the installation are not known")
	assert.ErrorContains(t, err, "name the configuration of the installation with --config")

	why, err := shared.Why(t.Context(), "deployment/web", "-n", s.Namespace, "--installation-name=absent")
	require.NoError(t, err)
	assert.Contains(t, why, "\nProblem: the flags of the installation are not known")
	why, err = shared.Why(t.Context(), "deployment/web", "-n", s.Namespace, "--installation-name=absent", "-o", "json")
	require.NoError(t, err)
	var report struct{ Problems []string }
	require.NoError(t, json.Unmarshal([]byte(why), &report))
	require.NotEmpty(t, report.Problems)
	assert.Contains(t, report.Problems[0], "the flags of the installation are not known")

	graph, err := shared.Graph(t.Context(), "-n", s.Namespace, theParts+"root")
	require.NoError(t, err)
	assert.Contains(t, graph, theParts+"leaf")
	why, err = shared.Why(t.Context(), "deployment/web", "-n", s.Namespace)
	require.NoError(t, err)
	assert.Contains(t, why, theParts+"root")
	assert.Contains(t, why, "the pods have the current configuration")
}
