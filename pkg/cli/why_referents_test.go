package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// What the user may not read is not known; what is held for another reason is held for the installation, too.
func TestStateThatTheUserMayNotReadIsNotKnown(t *testing.T) {
	t.Parallel()
	require.NoError(t, refusedTo(digest.State{}))
	require.NoError(t, refusedTo(digest.State{Hold: &digest.Hold{Reason: "not-ready"}}))
	require.NoError(t, refusedTo(digest.State{Hold: &digest.Hold{Reason: "not-installed", Refused: time.Unix(1, 0)}}), "it is refused to all")
	require.NoError(t, refusedTo(digest.State{Hold: &digest.Hold{Reason: "outside of --namespaces", Forbidden: true}}), "to the installation, too")
	err := refusedTo(digest.State{Hold: &digest.Hold{
		Reason: "kafkaservices.kroxylicious.io/service is forbidden", Forbidden: true, Refused: time.Unix(1, 0),
	}})
	assert.EqualError(t, err, "it needs a permission that you do not have: kafkaservices.kroxylicious.io/service is forbidden")
}
