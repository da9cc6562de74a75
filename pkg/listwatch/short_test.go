package listwatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// The reflector lists again after each of these, and returns no error. After a bookmark, it opens the next watch without a pause.
func TestWatchesThatEndAtOnceAreReported(t *testing.T) {
	t.Parallel()
	failed := func(code int32, reason metav1.StatusReason) func(*watch.FakeWatcher) {
		return func(w *watch.FakeWatcher) {
			w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason})
		}
	}
	later := func(w *watch.FakeWatcher) { <-time.After(time.Second); failed(410, metav1.StatusReasonExpired)(w) }
	for name, tc := range map[string]struct {
		end      func(*watch.FakeWatcher)
		reported bool
	}{
		"after a bookmark":          {func(w *watch.FakeWatcher) { w.Action(watch.Bookmark, configMap("", "6")); w.Stop() }, true},
		"without a word":            {(*watch.FakeWatcher).Stop, true},
		"with what is no event":     {failed(500, metav1.StatusReasonInternalError), true},
		"as too old":                {failed(410, metav1.StatusReasonExpired), true},
		"as too old, a second late": {later, false},
		"after an event":            {func(w *watch.FakeWatcher) { w.Add(configMap("b", "6")); w.Stop() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				failures := 0
				s := &server{}
				run(t, s, &Loop[*corev1.ConfigMap]{
					What: "config objects", Failed: func(_ error, refused bool) { failures++; assert.False(t, refused, "it was accepted") },
					Log: funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
				})
				tc.end(<-s.watches)
				tc.end(<-s.watches)
				w := <-s.watches
				synctest.Wait()
				assert.Zero(t, failures, "one or two of these are nothing special")
				tc.end(w)
				w = <-s.watches
				synctest.Wait()
				if !tc.reported {
					assert.Zero(t, failures)
					assert.Empty(t, lines)
					return
				}
				assert.Equal(t, 1, failures)
				tc.end(w)
				w = <-s.watches
				synctest.Wait()
				assert.Equal(t, 2, failures)
				require.Len(t, lines, 1, "lists that succeed, and watches that are accepted, are no recovery")
				assert.Contains(t, lines[0], "end at once without an event")
				w.Add(configMap("b", "7"))
				synctest.Wait()
				require.Len(t, lines, 2)
				assert.Contains(t, lines[1], `"watching again","watch":"config objects"`)
			})
		})
	}
}
