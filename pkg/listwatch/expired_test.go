package listwatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A gateway can answer 410 for an endpoint that is gone. The reflector then asks for a streaming list again without a pause.
func TestPermanent410IsReportedAndRetriedWithPauses(t *testing.T) {
	t.Parallel()
	gone := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 410, Message: "the endpoint is gone"}}
	for name, stream := range map[string]func() (watch.Interface, error){
		"of the request": func() (watch.Interface, error) { return nil, gone },
		"in the stream": func() (watch.Interface, error) {
			w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
			w.Error(&gone.ErrStatus)
			return w, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				var failures []string
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				l := &Loop[*corev1.ConfigMap]{
					List: func(context.Context, metav1.ListOptions) (runtime.Object, error) { requests++; return nil, gone },
					Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						requests++
						require.Less(t, requests, 1000)
						return stream()
					},
					Sink: &taken{}, Log: logr.Discard(),
					Failed: func(err error, _ bool) { failures = append(failures, err.Error()) },
				}
				l.Run(ctx)
				require.Greater(t, len(failures), 5)
				assert.Contains(t, failures[0], "the endpoint is gone")
				assert.LessOrEqual(t, requests, 3*len(failures), "a streaming list, a list, and the list of the newest state")
			})
		})
	}
}

// The reflector asks again, for the newest state.
func TestStreamingListAtAVersionThatHasExpiredIsNoFailure(t *testing.T) {
	t.Parallel()
	expired := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}
	for name, fail := range map[string]func(s *server, w *watch.FakeWatcher){
		"of the request": func(s *server, w *watch.FakeWatcher) {
			s.streams = []error{&apierrors.StatusError{ErrStatus: *expired}}
			w.Error(expired)
		},
		"in the stream": func(s *server, w *watch.FakeWatcher) { w.Error(expired); (<-s.initial).Error(expired) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{initial: make(chan *watch.FakeWatcher)}
				run(t, s, &Loop[*corev1.ConfigMap]{Log: logr.Discard(), Failed: func(err error, _ bool) { t.Error(err) }})
				w := <-s.initial
				end := configMap("", "7")
				end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				w.Action(watch.Bookmark, end)
				fail(s, w)
				(<-s.initial).Action(watch.Bookmark, end)
				synctest.Wait()
				assert.Empty(t, s.lists)
			})
		})
	}
}
