package state

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
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

func TestStatesAreKeptOfTheCreationTheyWereReadFor(t *testing.T) {
	t.Parallel()
	var c Creations
	key, app := workload.Key{Name: "web"}, reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	found := map[reference.Ref]digest.State{app: {Absent: true}}
	c.Keep(key, "1", found)
	assert.Empty(t, c.Found(key, "k"), "there is no creation")
	c.Created(key, "2")
	c.Keep(key, "1", found)
	assert.Empty(t, c.Found(key, "k"), "it is another workload")
	c.Keep(key, "2", found)
	assert.Equal(t, found, c.Found(key, "k"))
}
