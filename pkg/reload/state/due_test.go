package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestWaitForWhatIsUnreadEndsAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	var s State
	key, now := workload.Key{Name: "web"}, time.Unix(1_000, 0)
	wait := func(key workload.Key, at time.Duration) (since, left time.Duration) {
		began, left := s.ReferentWaits.Wait(key, now.Add(at))
		return began.Sub(now), left
	}
	since, left := wait(key, 0)
	assert.Equal(t, unreadLimit, left)
	assert.Zero(t, since)
	since, left = wait(key, time.Second)
	assert.Equal(t, unreadLimit-time.Second, left, "the first call begins the wait")
	assert.Zero(t, since)
	_, left = wait(key, unreadLimit)
	assert.Zero(t, left)
	_, left = wait(key, time.Hour)
	assert.Zero(t, left, "an attempt that fails then does not wait again")
	_, left = wait(workload.Key{Name: "other"}, 0)
	assert.Equal(t, unreadLimit, left)
	s.ReferentWaits.Forget(key)
	since, left = wait(key, time.Hour)
	assert.Equal(t, unreadLimit, left, "the next reload waits again")
	assert.Equal(t, time.Hour, since)
}
