package watch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// A server that is behind the others would show an older state than the one
// that was seen before: by another watch of this process, or before its start.
func TestFirstListIsConsistent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		s.Fault(faults{noStreamList: true})
		bulk := startBulk(t, s, watch.Config{})
		pass(time.Minute)
		require.Equal(t, []string{"a"}, names(bulk.Store().List()))
		lists := 0
		for _, request := range s.Requests() {
			if request.Get("watch") == "" {
				lists++
				assert.Empty(t, request.Get("resourceVersion"), "any version would do")
				assert.Empty(t, request.Get("limit"), "from the watch cache of the server")
			}
		}
		assert.Equal(t, 1, lists)
	})
}
