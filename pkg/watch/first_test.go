package watch_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// lists are the requests of lists that are not streamed.
func lists(s *apiServer) (all []request) {
	for _, r := range s.Requests() {
		if r.Get("watch") == "" {
			all = append(all, r)
		}
	}
	return all
}

// A server that is behind the others would show an older state than the one
// that was seen before: by another watch of this process, or before its start.
func TestListIsConsistent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		s.Fault(faults{noStreamList: true})
		bulk := startBulk(t, s, watch.Config{})
		pass(time.Minute)
		require.Equal(t, []string{"a"}, names(bulk.Store().List()))
		s.Compact()
		s.Drop(failure(410, "Expired"))
		pass(time.Minute)
		require.Len(t, lists(s), 2)
		for _, request := range lists(s) {
			assert.Empty(t, request.Get("resourceVersion"), "any version would do")
		}
	})
}

// Many large objects at a time would fill the memory before they are prepared.
func TestFewObjectsAreListedAtATime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t)
		want := make([]string, 0, 35)
		for n := range 35 {
			want = append(want, fmt.Sprintf("o%02d", n))
			s.Create(object(want[n]))
		}
		s.Fault(faults{noStreamList: true})
		bulk := startBulk(t, s, watch.Config{FieldSelector: "metadata.name!=o07"})
		want = slices.Delete(want, 7, 8)
		pass(time.Minute)
		require.Equal(t, want, names(bulk.Store().List()))
		s.Compact()
		s.Drop(failure(410, "Expired"))
		pass(time.Minute)
		require.Equal(t, want, names(bulk.Store().List()))
		s.Update(object("o34"))
		pass(time.Second)
		assert.Len(t, lists(s), 8)
		for _, request := range lists(s) {
			assert.Equal(t, "10", request.Get("limit"))
		}
	})
}
