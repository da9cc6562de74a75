package listwatch

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A proxy that holds back the bodies of answers sends the header of a stream at once, and what follows late or never. A list, which
// ends, comes through it.
func TestStreamedListThatStopsIsListedInstead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stream func(*watch.FakeWatcher)
		after  time.Duration
	}{
		"sends nothing":        {func(*watch.FakeWatcher) {}, 30 * time.Second},
		"stops within it":      {func(w *watch.FakeWatcher) { <-time.After(20 * time.Second); w.Add(configMap("b", "1")) }, 50 * time.Second},
		"ends within it":       {func(w *watch.FakeWatcher) { <-time.After(20 * time.Second); w.Stop() }, 20 * time.Second},
		"takes it for a watch": {func(w *watch.FakeWatcher) { w.Action(watch.Bookmark, configMap("", "1")) }, 0},
		"ends within it early": {func(w *watch.FakeWatcher) { w.Add(configMap("b", "1")); w.Stop() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{initial: make(chan *watch.FakeWatcher, 1)}
				sink := run(t, s, &Loop[*corev1.ConfigMap]{Log: logr.Discard()})
				began := time.Now()
				tc.stream(<-s.initial)
				w := <-s.watches
				assert.Equal(t, tc.after, time.Since(began))
				w.Modify(configMap("a", "6"))
				synctest.Wait()
				assert.Equal(t, []string{"replace a", "put a"}, sink.calls, "the list and what changes after it")
			})
		})
	}
}

func TestStreamedListIsTakenAsAWholeAndFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{initial: make(chan *watch.FakeWatcher, 1)}
		sink := run(t, s, &Loop[*corev1.ConfigMap]{Log: logr.Discard()})
		w := <-s.initial
		w.Add(configMap("b", "1"))
		<-time.After(20 * time.Second)
		w.Add(configMap("c", "2"))
		end := configMap("", "7")
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		w.Action(watch.Bookmark, end)
		<-time.After(time.Minute) // the end of a silent stream is the decoder's
		w.Delete(configMap("c", "8"))
		synctest.Wait()
		assert.Len(t, sink.calls, 2)
		assert.ElementsMatch(t, []string{"replace", "b", "c"}, strings.Fields(sink.calls[0]))
		assert.Equal(t, "remove c", sink.calls[1])
		assert.Empty(t, s.lists)
	})
}
