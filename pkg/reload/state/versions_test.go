package state

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A workload may be deleted, and created under the same name, while the configuration of the first one is recorded.
func TestOnlyTheCreationThatWasRecordedIsForgotten(t *testing.T) {
	t.Parallel()
	var c Creations
	key := workload.Key{Name: "web"}
	c.Recorded(key, "")
	c.Created(key, "2")
	c.Recorded(key, "1")
	assert.Equal(t, "2", c.Version(key))
	c.Recorded(key, "2")
	assert.Empty(t, c.Version(key))
}
