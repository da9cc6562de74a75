package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestRefusedEndOfAPauseIsTriedMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web, cart := workload.Key{Name: "web"}, workload.Key{Name: "cart"}
	r := &resumes{}
	assert.Zero(t, r.Wait(web, now), "nothing was refused")
	var waits []time.Duration
	for range 12 {
		waits = append(waits, r.Refused(web, now))
	}
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, waits[:3])
	assert.Equal(t, 5*time.Minute, waits[11])
	assert.Equal(t, 5*time.Minute, r.Wait(web, now))
	assert.Equal(t, time.Minute, r.Wait(web, now.Add(4*time.Minute)))
	assert.Zero(t, r.Wait(web, now.Add(time.Hour)))
	assert.Zero(t, r.Wait(cart, now), "another Deployment")
	r.Forget(web)
	assert.Zero(t, r.Wait(web, now))
	assert.Equal(t, time.Second, r.Refused(web, now), "another pause")
}
