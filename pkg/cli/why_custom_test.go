package cli

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// A Record names a custom resource, and the configuration that named it was deleted or cannot be read.
func TestCustomResourceWithoutConfigurationDoesNotExist(t *testing.T) {
	t.Parallel()
	read, err := configured{}.reader(t.Context(), &rest.Config{})
	require.NoError(t, err)
	custom := &customObjects{exists: read}
	_, exists := custom.Traits(reference.Ref{Kind: "filters.example.com", Name: "auth"})
	assert.False(t, exists, "no configuration names its resource")
	assert.NoError(t, custom.failed)
}

// To the installation, the workload may be one that restarts.
func TestCustomResourceThatCannotBeReadCounts(t *testing.T) {
	t.Parallel()
	forbidden := errors.New("forbidden")
	custom := customObjects{exists: func(objectKey) (bool, error) { return false, forbidden }}
	traits, exists := custom.Traits(reference.Ref{Kind: "filters.example.com", Name: "auth"})
	assert.True(t, exists, "it is unknown, so that it counts as one that exists")
	assert.True(t, traits.Marked, "it is unknown, so that it counts as one that is marked")
	assert.Equal(t, forbidden, custom.failed)
}
