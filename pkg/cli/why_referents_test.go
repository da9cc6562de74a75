package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// What the user may not read is not known, nor what was not read in time; what is held for another reason is held for the installation,
// too.
func TestStateThatTheCommandHasNotReadIsNotKnown(t *testing.T) {
	t.Parallel()
	require.NoError(t, notRead(digest.State{}))
	require.NoError(t, notRead(digest.State{Hold: &digest.Hold{Reason: "not-ready"}}))
	require.NoError(t, notRead(digest.State{Hold: &digest.Hold{Reason: "not-installed", Refused: time.Unix(1, 0)}}), "it is refused to all")
	require.NoError(t, notRead(digest.State{Hold: &digest.Hold{Reason: "outside of --namespaces", Forbidden: true}}), "to the installation, too")
	err := notRead(digest.State{Hold: &digest.Hold{
		Reason: "kafkaservices.kroxylicious.io/service is forbidden", Forbidden: true, Refused: time.Unix(1, 0),
	}})
	require.EqualError(t, err, "it needs a permission that you do not have: kafkaservices.kroxylicious.io/service is forbidden")
	err = notRead(digest.State{Hold: &digest.Hold{Reason: "kafkaservices.kroxylicious.io/service is unsynced", NotReadYet: true}})
	assert.EqualError(t, err, "kafkaservices.kroxylicious.io/service is unsynced")
}
