package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestFirstRefusalOfARow(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web, cart, s := workload.Key{Name: "web"}, workload.Key{Name: "cart"}, &State{}
	later := began.Add(longestRefused)
	assert.Equal(t, began, s.Refusals.Refused(web, began))
	assert.Equal(t, began, s.Refusals.Refused(web, later))
	assert.Equal(t, later, s.Refusals.Refused(cart, later), "another workload")
	s.Forget(web)
	assert.Equal(t, later, s.Refusals.Refused(web, later))
	hours := later.Add(2 * time.Hour)
	assert.Equal(t, hours, s.Refusals.Refused(web, hours), "nothing was refused for long")
}
