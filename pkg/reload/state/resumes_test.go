package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/pause"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestRefusedEndOfAPauseIsTriedMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web, cart := workload.Key{Name: "web"}, workload.Key{Name: "cart"}
	r := &resumes{}
	end := PauseEnd{pause.Resume, "2026-01-02T03:00:00Z"}
	assert.Zero(t, r.Wait(web, end, now), "nothing was refused")
	var waits []time.Duration
	refused := func(end PauseEnd, pace Pace) time.Duration {
		_, wait := r.Refused(web, end, pace, now)
		return wait
	}
	for range 12 {
		waits = append(waits, refused(end, NeedsUser))
	}
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, waits[:3])
	assert.Equal(t, 5*time.Minute, waits[11])
	assert.Equal(t, 5*time.Minute, r.Wait(web, end, now))
	assert.Equal(t, time.Minute, r.Wait(web, end, now.Add(4*time.Minute)))
	assert.Zero(t, r.Wait(web, end, now.Add(time.Hour)))
	assert.Zero(t, r.Wait(cart, end, now), "another Deployment")
	assert.Zero(t, r.Wait(web, PauseEnd{pause.Clean, end.Since}, now), "a user has resumed the Deployment")
	assert.Zero(t, r.Wait(web, PauseEnd{pause.Resume, "2026-01-02T04:00:00Z"}, now), "another pause")
	assert.Equal(t, time.Second, refused(PauseEnd{pause.Clean, end.Since}, Refused))
	for range 12 {
		waits = append(waits, refused(PauseEnd{pause.Clean, end.Since}, Refused))
	}
	assert.Equal(t, 30*time.Second, waits[len(waits)-1], "a permission that is missing is granted for all workloads at once")
	assert.True(t, r.Ended(web), "its end was refused before, and has now succeeded")
	assert.False(t, r.Ended(web), "it is forgotten")
	assert.Zero(t, r.Wait(web, end, now))
	assert.Equal(t, time.Second, refused(end, NeedsUser), "it has gone well meanwhile")
}

func TestRefusalsOfAnEndAreInARowUntilSomethingElseFails(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web, end := workload.Key{Name: "web"}, PauseEnd{pause.Resume, "2026-01-02T03:00:00Z"}
	for name, tc := range map[string]struct {
		between func(*resumes)
		first   time.Time
	}{
		"nothing else":        {func(*resumes) {}, began},
		"no answer":           {func(r *resumes) { r.Interrupted(web) }, began.Add(time.Hour)},
		"denied by a webhook": {func(r *resumes) { r.Refused(web, end, NeedsUser, began.Add(time.Minute)) }, began.Add(time.Minute)},
		"the end of another":  {func(r *resumes) { r.Refused(web, PauseEnd{}, Refused, began) }, began.Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &resumes{}
			r.Interrupted(web)
			first, _ := r.Refused(web, end, Refused, began)
			assert.Equal(t, began, first)
			tc.between(r)
			first, _ = r.Refused(web, end, Refused, began.Add(time.Hour))
			assert.Equal(t, tc.first, first)
		})
	}
}
