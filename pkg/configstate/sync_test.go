package configstate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// A watch that hangs while it is opened is no refusal, but it must not hold up the rest for ever.
func TestWatchThatFailsForLongDoesNotHoldUpTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Ring: func() digest.Ring { return digest.Ring{} }})
		require.NoError(t, err)
		var failing *watcher
		for _, w := range s.watchers {
			if failing == nil {
				failing = w
				continue
			}
			s.replace(w, nil)
		}
		s.attempted(failing, false)
		<-time.After(59 * time.Second)
		s.attempted(failing, false)
		assert.False(t, s.Synced(), "an API server that restarts is given some time")
		<-time.After(time.Second)
		s.attempted(failing, false)
		assert.True(t, s.Synced())
	})
}
