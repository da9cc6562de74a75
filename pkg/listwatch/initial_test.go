package listwatch

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		<-time.After(time.Minute) // the end of a silent stream is the transport's
		w.Delete(configMap("c", "8"))
		synctest.Wait()
		assert.Len(t, sink.calls, 2)
		assert.ElementsMatch(t, []string{"replace", "b", "c"}, strings.Fields(sink.calls[0]))
		assert.Equal(t, "remove c", sink.calls[1])
		assert.Empty(t, s.lists)
	})
}

func tooManyRequests() *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "busy"}
}

// The reflector would stream the list again by itself, and not look at the context while it pauses.
func TestTooManyRequestsWithinAStreamedListAreReportedAndEndWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		var reported, lines []string
		l := &Loop[*corev1.ConfigMap]{
			List: s.list, Sink: &taken{}, What: "config objects",
			Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
				w.Error(tooManyRequests())
				return w, nil
			},
			Log:    funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
			Failed: func(err error, _ bool) { reported = append(reported, err.Error()) },
		}
		runForAMinute(t, l)
		assert.Greater(t, len(reported), 5, "each failure is reported")
		assert.Len(t, lines, 1, "the same is logged once")
		assert.Empty(t, s.lists, "a list takes more of an API server that is busy")
	})
}

// The reflector opens the watch again by itself.
func TestTooManyRequestsWithinAWatchAreReported(t *testing.T) {
	t.Parallel()
	for name, streams := range map[string]bool{"behind a list": false, "behind a streamed list": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				if streams {
					s.initial = make(chan *watch.FakeWatcher, 1)
				}
				var lines []string
				failures := 0
				sink := run(t, s, &Loop[*corev1.ConfigMap]{
					What: "config objects", Failed: func(error, bool) { failures++ },
					Log: funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
				})
				var w *watch.FakeWatcher
				if streams {
					w = <-s.initial
					end := configMap("", "7")
					end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
					w.Action(watch.Bookmark, end)
				} else {
					w = <-s.watches
				}
				const times = 10
				for range times {
					w.Error(tooManyRequests())
					w = <-s.watches
				}
				synctest.Wait()
				assert.Equal(t, times, failures)
				assert.Len(t, sink.calls, 1, "it goes on where it was")
				require.Len(t, lines, 5, "watches that are accepted are no recovery")
				assert.Contains(t, lines[4], `"cannot watch; retrying"`)
				assert.Contains(t, lines[4], "busy")
				w.Add(configMap("b", "8"))
				synctest.Wait()
				require.Len(t, lines, 6)
				assert.Contains(t, lines[5], `"watching again"`)
			})
		})
	}
}

// runForAMinute runs a loop until its context ends, which must end it at once.
func runForAMinute(t *testing.T, l *Loop[*corev1.ConfigMap]) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { l.Run(ctx); close(ended) }()
	<-time.After(time.Minute)
	synctest.Wait()
	cancelled := time.Now()
	cancel()
	<-ended
	assert.Zero(t, time.Since(cancelled), "the loop goes on after the end of its context")
}
