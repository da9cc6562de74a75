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
	assert.Equal(t, unreadLimit, s.Unread.Wait(key, now))
	assert.Equal(t, unreadLimit-time.Second, s.Unread.Wait(key, now.Add(time.Second)), "the first call begins the wait")
	assert.Zero(t, s.Unread.Wait(key, now.Add(unreadLimit)))
	assert.Zero(t, s.Unread.Wait(key, now.Add(time.Hour)), "an attempt that fails then does not wait again")
	assert.Equal(t, unreadLimit, s.Unread.Wait(workload.Key{Name: "other"}, now))
	s.Unread.Forget(key)
	assert.Equal(t, unreadLimit, s.Unread.Wait(key, now.Add(time.Hour)), "the next reload waits anew")
}
