package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLeadershipBeginsByTheClockThatCountsNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var leads Leadership
		_, is := leads.Since(time.Now())
		assert.False(t, is, "a standby")
		begun := time.Now()
		leads.Begin(begun)
		<-time.After(5 * time.Minute)
		for name, tc := range map[string]struct{ now, want time.Time }{
			"the clock is right":            {time.Now(), begun},
			"it was set back by an hour":    {time.Now().Add(-time.Hour), begun.Add(-time.Hour)},
			"it was set forward by an hour": {time.Now().Add(time.Hour), begun},
		} {
			since, is := leads.Since(tc.now)
			assert.True(t, is, name)
			assert.WithinDuration(t, tc.want, since, 0, name)
		}
	})
}
