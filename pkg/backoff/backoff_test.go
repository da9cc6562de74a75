package backoff_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/backoff"
)

func TestDoubled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, longest time.Duration
		times          int
		want           time.Duration
	}{
		"not doubled":                  {time.Second, time.Minute, 0, time.Second},
		"no attempt yet":               {time.Second, time.Minute, -1, time.Second},
		"doubled once":                 {time.Second, time.Minute, 1, 2 * time.Second},
		"doubled five times":           {time.Second, time.Minute, 5, 32 * time.Second},
		"longest wait":                 {time.Second, time.Minute, 6, time.Minute},
		"longest wait is a power of 2": {time.Second, 32 * time.Second, 6, 32 * time.Second},
		"far above the longest wait":   {time.Millisecond, time.Hour, 100, time.Hour},
		"no overflow":                  {time.Second, time.Minute, 1_000_000, time.Minute},
		"first above the longest wait": {time.Minute, time.Second, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, backoff.Doubled(c.first, c.longest, c.times))
		})
	}
}
