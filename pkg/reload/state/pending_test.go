package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestEventsOfAWorkloadAreLeftOnceNoneIsPending(t *testing.T) {
	t.Parallel()
	c, key := &changes{}, workload.Key{Name: "web"}
	assert.False(t, c.HasPending(key), "no event has arrived")
	c.EventArrived(key, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	assert.True(t, c.HasPending(key), "an event has arrived")
	c.EventArrived(key, time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC))
	assert.True(t, c.HasPending(key), "a second one changes nothing about that")
	assert.False(t, c.forgetUnlessPending(key), "the workload is not in order yet")
	assert.True(t, c.HasPending(key), "the event is still to be handled")
	c.BecomeLeader()
	assert.False(t, c.HasPending(key), "an event of the time as a standby")
	assert.True(t, c.forgetUnlessPending(key), "nothing is pending")
	assert.Empty(t, c.entries)
}
