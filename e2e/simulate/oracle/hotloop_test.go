package oracle

import (
	"testing"
	"time"
)

func TestHotLoop(t *testing.T) {
	t.Parallel()
	writes := func(n int, pause time.Duration) func(s *scene) {
		return func(s *scene) {
			s.begin()
			for range n {
				s.request(replica, "patch", cart, nil)
				s.wait(pause)
			}
		}
	}
	runLaw(t, "hot-loop", map[string]lawCase{
		"no pause":      {want: "hot-loop/patch", because: "each write follows at once", happens: writes(100, time.Millisecond)},
		"pauses":        {because: "10 writes a second are not many", happens: writes(100, 100*time.Millisecond)},
		"a few at once": {because: "some attempts may follow each other", happens: writes(burst-1, 0)},
	})
}
