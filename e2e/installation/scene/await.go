package scene

import (
	"time"

	"github.com/stretchr/testify/require"
)

// interval is how often a condition is looked at that nobody announces.
const interval = 20 * time.Millisecond

// Await waits until a condition holds: it is asked again and again and returns nil when it does.
func (s *Scene) Await(what string, holds func() error) {
	s.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		missing := holds()
		if missing == nil {
			return
		}
		select {
		case <-deadline.C:
			require.NoError(s, missing, "awaited in vain: %s", what)
		case <-s.Context().Done():
			require.NoError(s, missing, "the test ended while it awaited: %s", what)
		case <-ticker.C:
		}
	}
}
