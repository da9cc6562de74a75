package listwatch

import (
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// The API server would accept the watch at the later version, and be silent until it reaches that. What was written before, and what was
// deleted in between, would never be seen.
func TestWatchThatIsAheadOfARestoredStorageListsAgain(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	const older = "an older state than was watched"
	for name, tc := range map[string]struct {
		// seen is the version of the last event; the storage has 5. ends are the watches that end before the one at which it is seen.
		seen   string
		ends   func(s *server, w *watch.FakeWatcher)
		calls  []string
		lists  int
		logged string
	}{
		"connections are refused meanwhile": {
			seen: "9", ends: func(s *server, w *watch.FakeWatcher) { s.refused = []error{refused}; w.Stop() },
			calls: []string{"replace a", "put b", "replace a"}, lists: 2, logged: "connection refused",
		},
		"connections are refused, and the storage has reached the version again": {
			seen: "3", ends: func(s *server, w *watch.FakeWatcher) { s.refused = []error{refused}; w.Stop() },
			calls: []string{"replace a", "put b", "replace a"}, lists: 2, logged: "connection refused",
		},
		"connections are refused after a silence": {
			seen: "9", ends: func(s *server, w *watch.FakeWatcher) {
				w.Action(watch.Bookmark, configMap("", "9"))
				<-time.After(quiet + time.Second)
				s.fails = []error{refused, refused}
				w.Stop()
			},
			calls: []string{"replace a", "put b", "replace a"}, lists: 4, logged: "connection refused",
		},
		"there are too many requests after a silence": {
			seen: "9", ends: func(s *server, w *watch.FakeWatcher) {
				w.Action(watch.Bookmark, configMap("", "9"))
				<-time.After(quiet + time.Second)
				s.fails = []error{apierrors.NewTooManyRequests("busy", 0)}
				w.Stop()
			},
			calls: []string{"replace a", "put b", "replace a"}, lists: 4, logged: older,
		},
		"a watch is silent": {
			seen: "9", ends: func(s *server, w *watch.FakeWatcher) {
				w.Stop()
				silent := <-s.watches
				<-time.After(quiet + time.Second)
				silent.Stop()
			},
			calls: []string{"replace a", "put b", "replace a"}, lists: 3, logged: older,
		},
		"a watch is silent after a bookmark": {
			seen: "9", ends: func(_ *server, w *watch.FakeWatcher) {
				w.Action(watch.Bookmark, configMap("", "9"))
				<-time.After(quiet + time.Second)
				w.Stop()
			},
			calls: []string{"replace a", "put b", "replace a"}, lists: 3, logged: older,
		},
		"a watch ends after an event": {
			seen: "9", ends: func(_ *server, w *watch.FakeWatcher) { w.Stop() },
			calls: []string{"replace a", "put b"}, lists: 1,
		},
		"versions have no order": {
			seen: "x", ends: func(_ *server, w *watch.FakeWatcher) { <-time.After(quiet); w.Stop() },
			calls: []string{"replace a", "put b"}, lists: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				s := &server{}
				sink := run(t, s, &Loop[*corev1.ConfigMap]{
					What: "config objects", Log: funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
				})
				w := <-s.watches
				w.Add(configMap("b", tc.seen))
				<-time.After(time.Minute) // to the reflector, one that ends within a second has failed
				tc.ends(s, w)
				<-s.watches
				synctest.Wait()
				assert.Equal(t, tc.calls, sink.calls)
				assert.Len(t, s.lists, tc.lists)
				assert.Contains(t, fmt.Sprint(lines), tc.logged)
			})
		})
	}
}
